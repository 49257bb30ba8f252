// SPDX-License-Identifier: Apache-2.0

// Command sidecar-injector is a mutating webhook that puts a sidecar first into the init containers of labelled pods (SC-22). One
// program has all the parts: serve answers the API server, sidecar is what runs beside the apps, manifests makes the certificates
// and prints what has to be applied.
//
// Its law: what is done to a pod is decided by Patch alone, which sees the pod and nothing else; a pod that has the sidecar is left
// as it is.
package main
