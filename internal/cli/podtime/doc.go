// SPDX-License-Identifier: Apache-2.0

// Package podtime fetches a pod's timeline from the node that keeps it, through the API server.
//
// Source is the one type: Get fetches a history, Follow streams it. Its law: all that is needed is a kubeconfig whose user may
// get pods/timeline. An API server of another make, which has no such subresource, is asked for its proxy to the pod's node
// (get nodes/proxy), and for a pod that is gone for that to every node.
package podtime
