// SPDX-License-Identifier: Apache-2.0

// Package fit decides which node a pod goes to, or says why it fits nowhere.
//
// A Node is a node object with the Placed pods on it; Decide looks at a pod and all nodes and returns a Decision. The
// law: the answer depends only on the arguments (no clock, client or memory), it changes none of them, and a
// refusal is in the words of Kubernetes' scheduler, since people search for them. What pods prefer decides among the
// nodes that can take a pod and makes none of them unfit: soft taints first, then wishes about nodes, about pods and
// about spreading in equal parts, then how much a node is used.
//
// Pure.
package fit
