// SPDX-License-Identifier: Apache-2.0

// Package spare gives memory back that a process at rest does not need: what its garbage collector has freed and keeps
// for later, and those pages of the program itself that only its start has used. Run does so when a process that has
// worked is quiet.
//
// Its law: nothing is lost by it. The program's pages stay in the kernel's cache of files until somebody else needs the
// room, and come back when they are used, without a read of the disk as long as they are there.
package spare
