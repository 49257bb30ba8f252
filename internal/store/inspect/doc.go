// SPDX-License-Identifier: Apache-2.0

// Package inspect looks at the files of an embedded etcd before it is opened, and decides whether it may be.
//
// Etcd trusts its files: with a log that was cut or a database page that was overwritten it panics, is killed by a
// signal, waits for ever, or, worst, starts and drops writes that it has acknowledged. [Look] reads the files and
// returns [Facts], [Judge] decides from those alone what is damaged, what is lost by it and what can still be used.
//
// Reading a damaged database can itself kill the process (bbolt panics in goroutines of its own, and a file that is
// shorter than it says ends in SIGBUS). [Apart] therefore has a child process do it: the program itself, which calls
// [Child].
//
// Its law: nothing is written, ever.
package inspect
