// SPDX-License-Identifier: Apache-2.0

// Package session debugs a container, a process or a unit of this machine (DA-01 to DA-03, DA-08, DA-09): [Run] puts
// together what the debugger sees, runs it by the bundled runc in the target's namespaces, and takes everything away.
//
// The steps are in files of their own: what of the target's namespaces is joined (join.go), which containers are shown
// (show.go), how their files come to /c/<name> (files.go), what is known of them to /c/.wherry/<name> (evidence.go),
// the debugger's own root filesystem (root.go), the process (run.go).
//
// Its law: the target is not changed, and nothing of it is found by a path twice: its namespaces and its root are held
// by descriptors from the moment at which its process was seen. All mounts are in a mount namespace of the session's
// own; what else a session makes, package guard knows how to remove, whoever was killed meanwhile.
package session
