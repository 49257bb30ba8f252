// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what the agent does, under the kubelet's names where the kubelet has one (SC-23) and under
// wherry_… where it has none.
//
// [Metrics] is one agent's registry. It is notified of what happens ([Metrics.Trace], [Metrics.StatusChanged], …) and
// keeps, per pod, the few times that a histogram needs. What runs now is not counted but looked up when somebody asks.
//
// The law: labels are bounded. Only the counts of probes name a pod, and all of a pod's series go when it does
// ([Metrics.Gone]); those of volumes name a claim, as long as a pod here has it; no series is about one attempt of a
// container. Nothing here blocks or fails; what is looked up takes as long as that takes.
package metrics
