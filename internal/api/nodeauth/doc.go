// SPDX-License-Identifier: Apache-2.0

// Package nodeauth decides what a node's agent may do, as the pages "Using Node Authorization" and "NodeRestriction" of the
// Kubernetes documentation say: a stolen node certificate must be worth no more than what runs on that node.
//
// A Graph knows which pods are bound to which node, and what they refer to. Judge decides about a request before its body is
// read; Restrict… decide about the object that would be written.
//
// Its law: what is not allowed is not; an answer that needs a pod which the graph does not know yet names it (Need), so that the
// caller can look at the store. No context, no client, no lock, no clock.
package nodeauth
