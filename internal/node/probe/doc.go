// SPDX-License-Identifier: Apache-2.0

// Package probe makes one try of a container's probe (PL-04): it runs the command, sends the HTTP request, opens the TCP
// connection or asks the gRPC health service, and tells what came of it as a [Result] in the kubelet's words.
//
// [Prober.Try] makes the try. What it needs to know of the container is a [Target]; the pure parts of it ([Port],
// [Target.Address], [Target.Request]) and the HTTP client ([NewClient]) serve lifecycle hooks as well.
//
// The law: one try, to its end, within the probe's timeoutSeconds. Nothing here repeats, counts, waits for the next period or
// knows what a verdict leads to: that is the planner's. An error says that there is no verdict: the try could not be made, or
// it was cut off by its context, or the runtime did not say how it ended. What was opened for a try is closed when it returns.
package probe
