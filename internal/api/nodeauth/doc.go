// SPDX-License-Identifier: Apache-2.0

// Package nodeauth decides what a node's agent may do, as the pages "Using Node Authorization" and "NodeRestriction" of
// the Kubernetes documentation say: a stolen node certificate must be worth no more than what runs on that node.
//
// A Graph knows which pods are bound to which node, and what they refer to. Judge decides about a request before its
// body is read; Restrict… decide about the object that would be written.
//
// Its law: whatever is not explicitly allowed is denied; if a decision needs a pod that the graph does not know yet, it
// names the pod (Need), so that the caller can look it up in the store. No context, no client, no lock, no clock.
//
// Pure.
package nodeauth
