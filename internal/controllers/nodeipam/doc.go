// SPDX-License-Identifier: Apache-2.0

// Package nodeipam gives each node a network for its pods: spec.podCIDRs of its object, as Kubernetes' controller of
// this name does (decision 062).
//
// [Decide] says which node gets what, of the [Facts]; it is pure. [Controller] writes that. A node may request networks
// in the annotation [RequestedNetworks]: networks that its pods have addresses of already.
//
// The laws: no two nodes ever have networks that overlap; what a node has, it keeps; and a request is granted if nobody
// else has it and nothing else is there.
package nodeipam
