// SPDX-License-Identifier: Apache-2.0

// Command sidecar-injector is a mutating webhook that inserts a sidecar before the init containers of labelled pods
// (SC-22). One program contains everything: serve answers the API server, sidecar runs next to the apps, manifests
// makes the certificates and prints the manifests to apply.
//
// Its law: Patch alone decides what is done to a pod, and sees nothing but the pod; a pod that already has the sidecar
// is not changed.
package main
