// SPDX-License-Identifier: Apache-2.0

// Package streams has what exec, attach, port-forward and the proxies need of a client's connection once its request
// has become one: it is taken over from net/http here and nowhere else.
//
// [Gathering] makes connections whose TLS records are gathered once they are taken over, and [Gather] has that for a
// client; [Pass] hands on what one side says in pieces that are as large as there is something to say.
//
// [Take] takes a connection over, with what the client sent before it was asked to. [Wrap] and [Watch] do so on behalf
// of a library that wants to take it over itself. [Half] makes a wrapper of a connection that can still be closed by
// halves; [CloseWrite] closes one half, and [End] closes a connection without taking from its peer what that has not
// read yet; [Linger] has a library do the same.
//
// [Ask] asks another server for an upgrade on a client's behalf; its [Answer] is a refusal, or joins the two. [Socket]
// is a server's end of a WebSocket whose messages belong to channels, [Inbox] holds what its client has sent too early,
// and [Monitor] reads such messages on their way from another server to a client.
//
// The law: no byte is lost at either end of a stream. What came with the request is read first. Nobody looks through a
// wrapper for what is below it, so none of them has an Unwrap method. And every wrapper of a connection can close the
// half that its peer reads from, if the connection can. The package imports nothing but Go's own packages and a
// WebSocket library, for the short program uses it too.
package streams
