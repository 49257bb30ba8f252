// SPDX-License-Identifier: Apache-2.0

// Package podrun runs pods in the foreground, as `wherry run` does: it creates what a manifest contains, reports what
// happens, follows the containers' logs, waits until the pods end, and cleans up.
//
// A Runner is one such run; Result says how it ended and with which exit code. A follower reports the life of a pod, a
// crew that of a workload (what makes pods: a Deployment, a Job) and of its pods, as they come and go. Package progress
// decides what to say about a pod or a workload; this package only acts. Screen is where it writes, and decides which
// names lines start with.
//
// Its law: whatever ends the run (the pod, a signal, a timeout, an error half way through creation), what the run
// promised to remove is removed, and nothing that was there before is touched. Without that promise, the pods of a run
// that gives up stay, so that they can be debugged.
package podrun
