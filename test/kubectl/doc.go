// SPDX-License-Identifier: Apache-2.0

// Command kubectl is the Kubernetes project's own kubectl, from k8s.io/kubectl and nothing else: what the end-to-end
// tests call the real kubectl. The tests build it; it is no part of wherry.
package main
