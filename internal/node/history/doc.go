// SPDX-License-Identifier: Apache-2.0

// Package history keeps what happened to each pod of the node, for its timeline.
//
// A [Recorder] is told of operations, looks at the node and changes of status, turns them into moments (package timeline),
// holds them in memory within bounds, appends them to one file per pod and serves them as JSON. [Read] reads such a file.
//
// The law: nobody waits for a history. Telling the recorder takes a lock and no system call; one goroutine writes. A file
// is appended to by whole lines and replaced as a whole when it has grown; of one that was cut off in the middle of a line all
// lines before are read. What is lost by a crash is lost from the picture only. The histories of pods that are gone are kept
// for a while.
package history
