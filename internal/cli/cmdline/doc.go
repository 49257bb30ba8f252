// SPDX-License-Identifier: Apache-2.0

// Package cmdline is what every command has: the Terminal that it reads and writes, the Exit with which it ends, flags
// that several commands have and what they mean, and what is printed about a command line that is wrong.
//
// Its law: it does nothing by itself. Whoever writes to a Terminal need not care what others wrote: it cannot act on
// the user's terminal. Results can be had as -o json or yaml, and nothing but a regular file is replaced by one.
package cmdline
