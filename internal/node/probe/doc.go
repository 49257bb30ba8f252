// SPDX-License-Identifier: Apache-2.0

// Package probe makes one attempt at a container's probe (PL-04): it runs the command, sends the HTTP request, opens
// the TCP connection or asks the gRPC health service, and reports the outcome as a [Result] in the kubelet's words.
//
// [Prober.Try] makes the attempt. What it needs to know of the container is a [Target]; the pure parts of it ([Port],
// [Target.Address], [Target.Request]) and the HTTP client ([NewClient]) serve lifecycle hooks as well.
//
// The law: one attempt, to its end, within the probe's timeoutSeconds. Nothing here repeats, counts, waits for the next
// period or knows what a verdict leads to: that is the planner's business. An error says that there is no verdict: the
// attempt could not be made, or it was cut off by its context, or the runtime did not say how it ended. What was opened
// for an attempt is closed when it returns.
package probe
