// SPDX-License-Identifier: Apache-2.0

// Package shell is the toolbox's /bin/sh: the interpreter of mvdan.cc/sh with a line editor, history, completion and
// the behaviour of a terminal's shell.
//
// The interpreter runs a shell's program within one process. What needs more is done here: the program is rewritten as
// it is read ([parse]), so that a command with & becomes a process (this program, started anew with the shell's
// variables and functions) with an id and, on a terminal, a process group of its own; jobs, fg, bg, wait, kill %1,
// trap, read -t and descriptors from 3 on are commands of this package, and so are test, getopts, exec and others that
// the interpreter has in part only. What it does in another way than every shell is put into words it knows: which
// failures count with set -e, what stands behind a break, backslashes in what is assigned.
//
// Its law: the prompt comes first, everything else when it is needed; what is typed ahead reaches the program it was
// typed for, so the editor reads a byte at a time and leaves the rest to the kernel; Ctrl-C ends what runs and never
// the shell. Commands that are nowhere in PATH but in the toolbox run all the same, so that the shell is of use with
// another file system than its own image's.
package shell
