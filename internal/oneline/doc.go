// SPDX-License-Identifier: Apache-2.0

// Package oneline shows words of others (containers, runtimes, other servers) to a user: on one line, without what a terminal would obey,
// and not longer than the place they go to.
//
// Its law: it is pure, and imports nothing that takes a program time to start.
package oneline
