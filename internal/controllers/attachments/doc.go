// SPDX-License-Identifier: Apache-2.0

// Package attachments is the controller that has volumes of CSI drivers attached to the nodes whose pods use them
// (WL-17): it makes and deletes VolumeAttachments, on which the drivers' attachers act, and shows in each node's status
// what is attached to it.
//
// [Controller] is its row in the list of controllers. [Decide] says what is to be done for one node; it depends on its
// arguments alone.
//
// The law is Kubernetes' protocol between this controller and a node: a volume is taken out of the node's
// volumesAttached first, and its attachment deleted only if the node, read again after that, does not have it in
// volumesInUse. So a node that begins to use a volume either finds it not attached, or is found to use it. A node that
// is gone, or has been out of reach for six minutes, or is marked out of service, uses nothing.
package attachments
