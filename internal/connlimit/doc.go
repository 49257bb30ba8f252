// SPDX-License-Identifier: Apache-2.0

// Package connlimit limits the connections to a port: a [Limiter] wraps its listener and its handler, and keeps their
// number to what the process can bear. [Descriptors] says whether file descriptors run short.
//
// A connection begins as a stranger's. It becomes a known user's when credentials are accepted on it, which the
// server's authentication reports ([Limiter.Authenticated]). Strangers have little time; there may be few of them, also
// per address. Which connections go when there are too many, or descriptors run short, is decided by package shed.
//
// Its law: Accept never waits for a connection to go away, and does not fail for want of descriptors while one can be
// closed for another.
package connlimit
