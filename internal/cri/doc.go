// SPDX-License-Identifier: Apache-2.0

// Package cri is the one client Wherry has for a container runtime: any endpoint that speaks CRI v1, the embedded
// containerd included.
//
// [Client] holds the two generated gRPC clients and adds what they lack: a version check whose errors tell the user
// what to do, [Client.Nudges] (which pods to look at again), [Client.Observe] (what the runtime shows of one pod),
// [Client.ExecSync], and predicates for the errors a runtime gives ([NotFound], [AlreadyExists], …).
//
// The law: an event is a nudge, never a fact. Nudges says only "look at this pod"; facts come from Observe, which asks
// the runtime. So a lost, doubled or late event can cost time but never correctness. And what CRI runtimes check
// differently (PID namespace targets: PID-08, PID-09) is checked here, once, before any of them sees it.
package cri
