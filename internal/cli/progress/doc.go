// SPDX-License-Identifier: Apache-2.0

// Package progress describes a pod's life, and a workload's, for someone who is waiting for it.
//
// Diff returns what changed between two versions of a pod as Lines; Outcome says whether the pod has ended and with
// which exit code; Stuck names what keeps it from running; Workload says how far what makes pods is. Its law: it is
// pure. It only looks at objects and imports no client, so every sentence that `wherry run` prints can be produced in a
// test from two objects.
//
// Pure.
package progress
