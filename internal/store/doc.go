// SPDX-License-Identifier: Apache-2.0

// Package store is the embedded etcd: the durable memory of a Wherry server that was given no external one.
//
// Etcd is one member, in this process: its Client calls it, and a unix socket is there for tools. Its timings are those
// of a member without peers, which makes a start fast and idling cheap: its clocks follow its use (pulse.go). Every
// write is fsynced before it is acknowledged.
//
// Its law: one folder, one member. A second server on the same folder is refused at once instead of waiting for a lock,
// and Close returns only when everything is on disk.
package store
