// SPDX-License-Identifier: Apache-2.0

// Package script is the little language in which tests say how a container behaves: words such as run_for=2s or
// exit_code=3 among its arguments. The fake runtime acts it; the test program (critest/prog) does it for real, so one
// test runs on both.
//
// Words that are not of the language are left alone: a script may stand anywhere in a command line.
//
// Pure.
package script
