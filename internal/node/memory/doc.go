// SPDX-License-Identifier: Apache-2.0

// Package memory knows from which NUMA nodes containers have their memory (PL-33).
//
// A [Manager] is called when a pod has been placed ([Manager.Keep]) and asked when a container is made
// ([Manager.Nodes]). Package bank decides which nodes those are.
//
// The law: who has what is written into the pod's folder before the pod is let in, and kept until it has ended.
package memory
