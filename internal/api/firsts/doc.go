// SPDX-License-Identifier: Apache-2.0

// Package firsts tells parts of this process when the first object of a kind is stored, and when the first object that
// has an owner is: so that who works on them need not run, and need not watch, before there is anything to do.
//
// A [Board] is told of every write by the storage that all kinds and custom resources share; who waits subscribes. It is
// told of writes of this process only: what was stored before, or by another server, its subscribers look up.
//
// Its law: a write that is no first costs one lookup. What was told once is never told again.
package firsts
