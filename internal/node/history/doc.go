// SPDX-License-Identifier: Apache-2.0

// Package history keeps what happened to each pod of the node, for its timeline.
//
// A [Recorder] gets operations, observations of the node and status changes, turns them into moments (package
// timeline), holds them in memory within bounds, appends them to one file per pod and serves them as JSON. [Read] reads
// such a file.
//
// The law: nobody waits for a history. Telling the recorder takes a lock and no system call; one goroutine writes.
// Files grow by whole lines and are replaced as a whole when they get too long; if one was cut off in the middle of a
// line, all lines before it are still read. A crash loses part of the picture and nothing else. The histories of pods
// that are gone are kept for a while.
package history
