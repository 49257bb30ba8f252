// SPDX-License-Identifier: Apache-2.0

// Package simulate runs a whole server, seed by seed, in a world whose time, runtime and misfortunes are the test's.
//
// A [world] lives in a bubble of testing/synctest: real etcd, without a network; the real API server, controllers and
// agent; the fake runtime of package critest. A fate kills the server at any moment, lets etcd and the runtime fail
// before or after they have done what was asked, restarts the runtime, ends containers. Clients create, change, watch
// and delete all the while.
//
// Its law: what a client was told is true for ever (no acknowledged write is lost), nothing runs twice, every watcher
// sees one history, and when the world is calm again everything that was asked for comes to its end.
package simulate
