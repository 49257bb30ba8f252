// SPDX-License-Identifier: Apache-2.0

// Package work keeps pods going: one [Worker] per pod, each a goroutine that owns all it knows of its pod.
//
// A worker observes, asks [plan.Next] what ought to be under way, starts the operations that are missing, cancels those
// no longer wanted, has the status stored, and waits for news: the pod was changed, the runtime nudged, an operation
// returned, the time to look again has come. It decides nothing. It asks a [Node] for whatever needs doing.
//
// The law: a worker never acts on an observation older than the last operation that returned, a cancelled operation is
// out until it returns, and whatever a worker remembers may be lost at any moment. [Set] holds the workers of a node.
package work
