// SPDX-License-Identifier: Apache-2.0

// Package cpus gives containers of guaranteed pods that ask for whole CPUs some to themselves, and moves all others off
// them (PL-33): the kubelet's CPU manager with its policy static.
//
// A [Manager] is asked when a container is made ([Manager.Give]), and sets in the runtime which CPUs running containers
// have from then on. Package pin decides which those are.
//
// The law: who has what is written into the pod's folder before the container is made, and kept until the pod has
// ended. What was set in the runtime is not remembered over a restart: all is set again.
package cpus
