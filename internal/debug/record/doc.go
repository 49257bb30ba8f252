// SPDX-License-Identifier: Apache-2.0

// Package record puts on record who entered which pod, with what, and how that ended.
//
// A [Recorder] writes what is stored: a DebugRun, an event, the pod's condition Tainted and its annotations. [Note] and
// its sisters put the same on the request's audit event, where [Stream] listens for the [End] of a command.
//
// Its law: what a Recorder was asked to write is written although the client goes away. The message of the condition is
// for people; nothing is read back from it.
package record
