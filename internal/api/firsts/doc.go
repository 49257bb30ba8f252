// SPDX-License-Identifier: Apache-2.0

// Package firsts tells those who wait for it of the first object of a kind, or the first object with an owner, when it
// is stored: what works on such objects need not run, and need not watch, before there are any.
//
// A [Board] is told of every write by the storage that all kinds and custom resources share. It knows of writes of this
// process only: what was stored before, or is by another server, whoever waits looks up.
//
// Its law: each [Wait] is called once, and then forgotten, unless it says otherwise. A write that nobody waits for
// costs one lookup.
package firsts
