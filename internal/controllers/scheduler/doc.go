// SPDX-License-Identifier: Apache-2.0

// Package scheduler assigns pods to a node: it binds what fits and reports why the rest does not.
//
// Scheduler is one goroutine that owns all it knows (nodes, what is on them, pods that wait) and a few that bind.
// Informers send it changes through a mailbox; on each it asks package fit about the pods that wait. The law: a pod is
// tried the moment it is seen, and one that did not fit whenever something changes that might make it fit, and at no
// other time. A pod that is being bound already counts on its node. Nothing is remembered across restarts: a pod that
// waits is a pod without a node.
package scheduler
