// SPDX-License-Identifier: Apache-2.0

// Package enter serves the requests that enter a pod by streams: pods/exec and pods/attach.
//
// [Exec] goes beyond Kubernetes: with the parameters of a debug session it makes a debug container and enters that
// (exec++), with an image it runs a command from the image inside the pod (image exec). [Attach] is as in Kubernetes.
//
// Its law: it distinguishes the three ways and nothing else. Each makes sure that it is put on record who enters.
package enter
