// SPDX-License-Identifier: Apache-2.0

// Package debugrun is the Go side of debug.wherry.dev/v1: the permanent record of who debugged which pod, with what,
// when and how it ended, and the words about debugging that are on a pod. How a client asks for a debug session:
// package debugask.
//
// A DebugRun is one run of an ephemeral container, or one command run from an image inside a pod (image exec). Clients
// may read and delete records; only the server writes them.
//
// Client is a small client for them. The law: both server and commands import this package, so it decides nothing and
// imports nothing of either.
//
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.wherry.debug.v1
// +groupName=debug.wherry.dev
package debugrun
