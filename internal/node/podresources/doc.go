// SPDX-License-Identifier: Apache-2.0

// Package podresources shows programs on the node which pod has which devices, as the kubelet does: the API
// k8s.io/kubelet/pkg/apis/podresources/v1, which monitoring of GPUs asks (PL-34, KEP-606), and v1alpha1 beside it.
//
// A [Server] asks its [Source] at every call; it remembers nothing.
//
// The law: it answers root alone, by the rights of its socket, and changes nothing.
package podresources
