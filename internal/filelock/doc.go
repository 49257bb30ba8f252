// SPDX-License-Identifier: Apache-2.0

// Package filelock takes the lock that makes a process the only one to work on a folder.
//
// Its law: a lock is the kernel's (flock(2)), on an open file. It ends with the last process that has the file open,
// however that ends: nothing has to be tidied up after a kill. A child that a process has forked has the file open too,
// until it executes its program; so a lock may outlive its holder by a moment, and whoever takes it has patience with
// one that is held by nobody.
package filelock
