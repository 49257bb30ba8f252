// SPDX-License-Identifier: Apache-2.0

// Package socketpair connects parts of one process that talk HTTP to each other.
//
// A [Listener] accepts what its Dial connects, each time a pair of connected sockets that have no name.
//
// Its law: nothing outside the process can reach them, so who serves on one knows who is on the other side and needs no
// TLS.
package socketpair
