// SPDX-License-Identifier: Apache-2.0

// Package ops does what the planner wants done: each [plan.Verb] has one method of [Runner] that runs it to its end
// through the CRI and the agent's folders, and [Runner.Observe] tells the planner what the node shows.
//
// The configs that the runtime is given are made by pure functions of the pod ([SandboxConfig], [ContainerConfig]).
//
// The law: nothing here decides whether or when. Every operation is idempotent and may be cut off at any line; run
// again, it completes what was begun. Errors are for the user: they become the message of a container's status.
package ops
