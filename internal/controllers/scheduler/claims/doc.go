// SPDX-License-Identifier: Apache-2.0

// Package claims decides what a pod's claims to volumes mean for where it goes: which nodes have its volumes, and what
// has to happen to claims before the pod can be bound (WL-15, WL-17).
//
// [Judge] looks at a pod before a node is chosen, [Prepare] at the node that was chosen.
//
// Its law: a claim that waits for its first consumer is given a node or a volume once, and the pod follows it there.
//
// Pure.
package claims
