// SPDX-License-Identifier: Apache-2.0

// Package terms decides on what terms a pod gets a volume of a CSI driver (WL-17): what of the pod, its volume and the
// driver's CSIDriver object reaches the driver, under which names, and what a node and a claim show of it.
//
// [Persistent] and [Inline] make a [Volume] of what the API has; [Ability] reads what a driver can do; [MergeDrivers]
// and [NodeMeta] say what the node's objects show of its drivers; [Grown] and [Growing] what a claim shows of a volume
// that becomes larger.
//
// Pure.
//
// Its law: names and words are Kubernetes' own, so that drivers, their sidecars and other control planes find
// what they look for.
package terms
