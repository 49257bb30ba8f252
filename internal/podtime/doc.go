// SPDX-License-Identifier: Apache-2.0

// Package podtime fetches a pod's timeline from the node that keeps it, through the API server.
//
// Source is the one type: Get fetches a history, Follow streams it. Its law: all that is needed is a kubeconfig whose
// user may get pods/timeline. With another implementation of the API server, which has no such subresource, it goes
// through that server's proxy to the pod's node (get nodes/proxy), and for a pod that is gone, to every node.
package podtime
