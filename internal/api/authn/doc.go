// SPDX-License-Identifier: Apache-2.0

// Package authn finds out who sends a request to the API server.
//
// Options say how, Completed are options that were checked and read; Authenticators know people and programs by
// certificate and by bearer token, and serve the reviews of who somebody is. AccountTokens signs and checks the tokens
// of service accounts and serves the keys to check them with. LoopbackUsers are parts of the server's own process, each
// a user of its own.
//
// Its law: who shows nothing is refused unless the options let the unknown in; who shows what is not good is always
// refused. What a token says is believed only while everything it is bound to still exists in the store. No error and
// no log line holds a secret.
package authn
