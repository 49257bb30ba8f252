// SPDX-License-Identifier: Apache-2.0

// Package firsts notifies those who wait for the first object of a kind, or the first object with an owner, when it is
// stored: what works on such objects need not run, and need not watch, before there are any.
//
// A [Board] is called for every write by the storage that all kinds and custom resources share. It knows of writes of
// this process only: whoever waits must look up what was stored before, or by another server.
//
// Its law: each [Wait] is called once and then forgotten, unless it has Keep. A write that nobody waits for
// costs one lookup.
package firsts
