// SPDX-License-Identifier: Apache-2.0

// Package progress puts a pod's life into words for someone who waits for it.
//
// Diff tells what changed between two versions of a pod as Lines; Outcome says whether the pod has ended and with which
// exit code; Stuck names what keeps it from running. Its law: it is pure. It looks at pods only and imports no client, so every
// sentence that `wherry run` prints can be had in a test from two objects.
package progress
