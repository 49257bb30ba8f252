// SPDX-License-Identifier: Apache-2.0

// Package unmetered has work queues count nothing. It is imported for its effect alone, by cmd/wherry, before any queue
// is made. A queue that is metered wakes twice a second, for as long as it is there, to say how long it has been at
// work; of the server's queues some are the library's and all have nothing to do nearly always. Its law: what a queue
// does is the same, and metrics of it (workqueue_*) are none.
// (docs/decisions/077-an-idle-server-is-quiet.md)
package unmetered
