// SPDX-License-Identifier: Apache-2.0

// Package podrun runs pods in the foreground, as `wherry run` does: it creates what a manifest holds, tells what happens,
// follows the containers' logs, waits for the pods' end and cleans up.
//
// A Runner is one such run; Result says how it ended and with which exit code. What to say about a pod is decided in package
// progress; this package only does. Screen is where it writes, and decides which names stand in front of lines.
//
// Its law: whatever ends the run (the pod, a signal, a timeout, an error half way through creation), what the run promised to remove
// is removed, and nothing that was there before is touched. What a run gives up stays without that promise: somebody wants to look
// into it.
package podrun
