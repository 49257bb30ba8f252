// SPDX-License-Identifier: Apache-2.0

// Package csi is the node's side of CSI drivers (WL-17): programs that know a vendor's storage, register at the node,
// and mount volumes for its pods. They speak the Container Storage Interface, version 1.
//
// [Manager] finds the sockets of drivers, registers them in the node's objects, and has them publish volumes:
// [Manager.Publish] is asked when a pod's volumes are made, [Manager.Unpublish] when they go. Package terms decides
// what drivers get.
//
// The law: what a driver is asked for is written into the pod's folder before it is asked, and taken out when the
// driver has answered that it is gone. So an agent that is killed at any moment asks for the same again, which drivers
// are made for, and never for what it has an answer to; and what no pod needs any more goes by the pod's folder, as all
// of its volumes do. A volume is staged once for all pods of the node, and unstaged after the last; that, too, is in
// the pods' folders and nowhere else. A machine that has started anew has nothing mounted: what was written down before
// is asked for again.
package csi
