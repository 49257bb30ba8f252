// SPDX-License-Identifier: Apache-2.0

// Package exitcode has the exit codes by which shells and docker say that a command could not be run, and finds them in
// a container runtime's words, since the CRI has no codes for it.
//
// Its law: it is pure, and imports nothing that takes a program time to start: the client of a short command needs it
// too.
//
// Pure.
package exitcode
