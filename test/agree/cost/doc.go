// SPDX-License-Identifier: Apache-2.0

// Cost measures what it would cost to let Kubernetes' own code do a part of the work that was written by hand here: it
// links that code into the main program and compares size, packages, initialization, time and memory with the program
// as it is. The decision page about Kubernetes' code has its figures, and says how to run it.
//
// A part is a row of parts.go. Its law: what is measured is the program itself, with code of Kubernetes' that is kept
// by the linker and never called, so the figures are what importing costs at the least.
package main
