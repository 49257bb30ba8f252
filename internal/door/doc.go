// SPDX-License-Identifier: Apache-2.0

// Package door stands before a port: a [Door] wraps its listener and its handler, and keeps connections to numbers that
// the process can bear. [Descriptors] says whether file descriptors run short.
//
// A connection begins as a stranger's. It becomes somebody's when credentials are accepted on it, which the server's
// authentication notifies the door ([Door.Knows]). Strangers have little time; there may be few of them, also per
// address. Which connections go when there are too many, or descriptors run short, is decided by package crowd.
//
// Its law: Accept never waits for a connection to go away, and does not fail for want of descriptors while one can be
// closed for another.
package door
