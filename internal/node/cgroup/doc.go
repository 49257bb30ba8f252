// SPDX-License-Identifier: Apache-2.0

// Package cgroup gives every pod its cgroup below its QoS class, as Kubernetes lays them out (PL-08):
//
//	<root>/kubepods                 guaranteed pods directly in it
//	<root>/kubepods/burstable       its CPU weight is the sum of its pods'
//	<root>/kubepods/besteffort
//
// or the same as systemd slices. ResourcesOf and ContainerResources decide, without touching anything, which limits a
// pod's cgroup and a container's get; Driver applies them, on cgroup v1 (also hybrid), v2, by file or through systemd.
//
// Laws: the kernel's tree is the only state, so EnsurePod and RemovePod may be repeated at any time, even by another
// process after a crash; a cgroup with processes in it is never removed, and only EndPod kills anything. A root per
// server (Config.Root) keeps servers apart.
package cgroup
