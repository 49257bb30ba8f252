// SPDX-License-Identifier: Apache-2.0

// Command wherry-cni is Wherry's CNI plug-in. containerd runs it for every pod sandbox; the implementation
// is in internal/runtime/network.
package main
