// SPDX-License-Identifier: Apache-2.0

// Package membership is what an agent finds out of its cluster before it sets up anything on its machine: whether a
// wherry server is at its head, which services it carries then, and which network its pods have.
//
// [Learn] asks, and returns a [Membership]; what was learnt is kept in a file of the data folder, and is what holds
// while the API server does not answer. [Pods] and [Nodes] read what a wherry server serves a node of others' pods and
// of the other nodes.
//
// The law: pods that run keep their network. Another one, which the cluster may have given the node since, is taken
// when none runs.
package membership
