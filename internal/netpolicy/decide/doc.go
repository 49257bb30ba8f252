// SPDX-License-Identifier: Apache-2.0

// Package decide says which packets between pods NetworkPolicies let pass: which chains, maps and sets the kernel
// should have for the policies, namespaces and pods that there are, and, for people, which policy lets a connection
// pass or not.
//
// Pure.
//
// A [World] gets one object after the other; its [World.Tables] are what the kernel should have, and [Diff] is
// what makes of the tables that are there those that should be. [World.Judge] answers for one connection, with reasons,
// from the policies themselves.
//
// Words: a policy isolates the pods that it selects, in a [Direction]; a pod that no policy isolates is free in it.
// Peers are the pods that a pair of selectors matches, a set in the kernel that all policies with this pair share. A
// profile is the chain of all pods that the same policies isolate. The name server is answered as if it were a pod.
//
// The laws: the same objects give the same tables, in whatever order they came; a change of one pod changes its own
// elements only, however many pods and policies there are; nothing in the tables points to what is not in them; and the
// tables let pass what Judge says.
package decide
