// SPDX-License-Identifier: Apache-2.0

// Package session is the API server's part in debug containers: it makes, stops and follows them, and joins the client
// that asks for one with it.
//
// A [Debugger] serves pods/ephemeralcontainers and pods/debug, a [Joiner] a request that makes a debug container and
// enters it.
//
// Its law: nobody enters a pod before it is put on record that he does, and what the server refuses leaves no record.
package session
