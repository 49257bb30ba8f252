// SPDX-License-Identifier: Apache-2.0

// Package sessionchild is the process that an agent starts for one session, or for one look at what is known of a pod
// (DA-05, DA-07, DA-09): [Main] reads a talk.Ask, finds the pod by its runtime, and runs the session in the machine's
// own namespaces, where the agent has started it.
//
// What to run and what to show is decided in plan.go, apart from what is done.
//
// Its law: nothing is shown before the runtime has confirmed that the pod has the uid that was asked for. It leaves the
// cgroup of the agent's container before it makes anything, and ends when the agent is gone.
package sessionchild
