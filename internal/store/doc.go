// SPDX-License-Identifier: Apache-2.0

// Package store is the embedded etcd: the durable memory of a Wherry server that was given no external one.
//
// Etcd is one member, in this process, reachable over a unix socket only. Its timings are those of a member without
// peers, which makes a start fast (some 0.2 s) and idling cheap; every write is fsynced.
//
// Its law: one folder, one member. A second server on the same folder is told so at once instead of waiting for a lock,
// and Close returns only when everything is on disk.
package store
