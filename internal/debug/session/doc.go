// SPDX-License-Identifier: Apache-2.0

// Package session is the API server's part in debugging: it makes, joins and stops debug containers, lets image execs
// in, and puts on record who entered which pod.
//
// A Debugger answers what package connect asks it of a request into a pod, and serves pods/ephemeralcontainers and
// pods/debug. What is on record is a DebugRun, an event, a note in the audit log, the pod's condition Tainted and its
// annotations.
//
// Its law: nobody enters a pod before it is put on record that he does, and what the server refuses leaves no record.
// The message of the condition is for people; nothing is read back from it.
package session
