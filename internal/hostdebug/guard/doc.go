// SPDX-License-Identifier: Apache-2.0

// Package guard ends what a debug session on this machine leaves, however it ended (DA-09). Each session has a process
// of the short program beside it, in a session of its own, which reads a pipe that the command holds: when the command
// is gone, killed or not, it kills the session's cgroup and removes its folders. [Clean] is that; [Sweep] does it for
// sessions whose command and guard are both gone.
//
// A session that was asked for from within a container, by a cluster's agent, is kept apart from it ([Machine.Keep]).
//
// Its law: what a session makes on the machine is named by the session's ID before it is made, at the places that this
// package lists, so that it is found again; everything else is in a mount namespace that dies with its processes. It
// imports nothing that takes a program time to start.
package guard
