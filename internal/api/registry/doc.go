// SPDX-License-Identifier: Apache-2.0

// Package registry keeps the kinds that the API server serves: how a kind is described, stored and followed.
//
// A Kind is one row of the table of kinds: its names, its Go types and its Rules, a pure strategy (what is set, what is
// refused), usually written as Typed, in terms of the Go type. A Backend opens the storage of each kind, a REST over
// the library's genericregistry.Store; Stores are all of them. The Go types themselves are known to package schemes. A
// Room says when the store is full.
//
// Its law: it knows nothing of what stands on it. Rules import no client and no clock; quotas come in as a Charger;
// every write, the server's own included, goes through the same strategies.
package registry
