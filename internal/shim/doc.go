// SPDX-License-Identifier: Apache-2.0

// Package shim serves one pod's containers to containerd: it is the program wherry-shim, a process for each pod, which
// speaks containerd's task API (runtime/task/v3) and has runc run the containers (io.containerd.wherry.v1,
// docs/decisions/078-a-shim-of-our-own.md).
//
// A [service] has a [container] for each task. One of them is the pod's sandbox, which is no container: its namespaces
// are held by a [holder], the front program (front/), which containerd also starts in the shim's place. A container has
// a first [process] and those that are executed in it; what a process is now follows from what has happened to it.
// Their ends come by [children], what happens is reported to containerd by [events].
//
// Its law: a shim is all that a pod's containers need to go on, and nothing of them goes on without it. It never waits
// for containerd but to be read; containerd alone has it end; when it is killed the holder ends with it, and
// [Clean], run by containerd from the bundle, ends and removes the rest. Nothing of a container runs any more when its
// end is reported.
package shim
