// SPDX-License-Identifier: Apache-2.0

// Package netpolicy enforces NetworkPolicies on this node: it follows policies, namespaces and pods, has package decide
// say what the kernel should have, and package tables make it so.
//
// [Enforcer] is made with New; its Start returns when what there is is enforced, which is before the node starts pods,
// and its Run works until its context ends, which takes nothing away: policies hold while nobody runs here.
//
// The laws: nothing in the kernel is touched before all that there is is known, so nothing passes that should not,
// whenever the server was killed. While there are policies, a pod that is not known yet sends and receives nothing.
// What cannot be done is tried again from what the kernel says it has. Without policies there are no tables, and
// nothing is followed: the first one is signalled by the board of first objects.
package netpolicy
