// SPDX-License-Identifier: Apache-2.0

// Package devices is the node's side of Kubernetes' device plug-ins (PL-34): programs that know a vendor's devices,
// report them to the node and say how a container gets one. They speak k8s.io/kubelet's deviceplugin/v1beta1.
//
// [Manager] serves the socket that plug-ins register at, follows what each of them reports, and gives containers
// devices: [Manager.Give] is asked when a container is made. Package grant decides which devices those are.
//
// The law: what a container is given is written into its pod's folder before the plug-in is asked for it, and kept
// until the pod has ended. So an agent that is killed at any moment gives the same devices to the same containers, asks
// the plug-in once for what it has an answer to, and never has to ask the runtime who has what.
package devices
