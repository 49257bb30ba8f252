// SPDX-License-Identifier: Apache-2.0

// Package shell is the toolbox's /bin/sh: the interpreter of mvdan.cc/sh with a line editor, history, completion and
// the behaviour of a terminal's shell.
//
// Its law: the prompt comes first, everything else when it is needed; what is typed ahead reaches the program it was
// typed for, so the editor reads a byte at a time and leaves the rest to the kernel; Ctrl-C ends what runs and never
// the shell. Commands that are nowhere in PATH but in the toolbox run all the same, so that the shell is of use with
// another file system than its own image's.
package shell
