// SPDX-License-Identifier: Apache-2.0

// Package oneline makes text written by others (containers, runtimes, other servers) fit to show to a user: on one
// line, without what a terminal would obey, and no longer than the place it goes to.
//
// Its law: it is pure, and imports nothing that takes a program time to start.
//
// Pure.
package oneline
