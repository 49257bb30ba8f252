// SPDX-License-Identifier: Apache-2.0

// Package ask turns what a user typed after `wherry debug` and `wherry exec` into the streaming request that it means:
// [Debug] and [Exec] hold the flags, a [Session] is the request, [Where] says at which server.
//
// Its law: there is one place where flags become a request. The commands use it, and so does package short, which makes
// requests before the rest of the program has started; therefore it imports nothing that takes time to start.
package ask
