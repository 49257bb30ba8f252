// SPDX-License-Identifier: Apache-2.0

// Package oidctest is an OpenID Connect provider for tests: discovery, keys, a page to sign in at, codes, tokens and
// their renewal, over HTTPS on loopback. [Start] starts a [Provider]; [Provider.Behave] has it do what providers should
// not, or seldom do, as [Behaviour] says.
//
// Its law: it holds clients to the protocol. A code is good once, for the client, the address and the PKCE verifier
// that it was given for; so is a token to renew by.
package oidctest
