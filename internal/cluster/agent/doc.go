// SPDX-License-Identifier: Apache-2.0

// Package agent is the one of a node that runs debug sessions beside the node's pods, for the API alone (DA-05, DA-07,
// DA-09). [Main] is its process, which is of the short program: it idles in a tenth of the memory. [Server] answers the
// paths of package wire; [TLS] says whom it hears.
//
// The work is done by a process of its own for each session (package sessionchild), which the agent starts in the
// machine's own namespaces (host.go) and talks to by pipes (package talk): its streams are joined with the client's
// here (session.go, streams.go).
//
// Its law: a client that does not have the API's certificate is not heard at all; what is asked for is judged before
// the connection becomes a stream; and no session outlives the process that it was asked of for longer than it takes to
// notice. It imports nothing that takes a program time to start.
package agent
