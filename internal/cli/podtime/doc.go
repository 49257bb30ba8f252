// SPDX-License-Identifier: Apache-2.0

// Package podtime fetches a pod's timeline from the node that keeps it, through the API server.
//
// Source is the one type: Get fetches a history, Follow streams it. Its law: all that is needed is a kubeconfig whose user may
// get pods and nodes/proxy; a pod that is gone from the API server is asked of every node.
package podtime
