// SPDX-License-Identifier: Apache-2.0

// Package kubelettest has what tests of streams into pods need: a small kubelet whose containers are Go functions, pods
// and nodes, a server of storages, and clients that speak each protocol.
//
// A [Cluster] is pods, nodes and their [Kubelet]; it serves the storages that it is given.
//
// Its law: it knows the API of the kubelet and of Kubernetes, and nothing of how the API server goes from one to the
// other.
package kubelettest
