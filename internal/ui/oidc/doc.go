// SPDX-License-Identifier: Apache-2.0

// Package oidc signs people in at an OpenID Connect provider: by an authorization code, with PKCE, a state and a nonce.
// [New] makes a [Provider] of [Options]. [Provider.Begin] makes a [Flow], which says where a browser is to be sent;
// [Provider.Redeem] gets the [Tokens] for what it comes back with, [Provider.Renew] gets later ones, [Provider.Revoke]
// tells the provider that they are needed no more.
//
// Its law: who somebody is it leaves to others. An ID token is read here only for what its signature is not about: that
// it is the answer to the question that was asked (nonce), of the one who asked before (sub), and until when it is
// good. The Kubernetes API judges it, as it judges each bearer token. Nothing is asked of a provider before somebody
// signs in. What a provider says is told in words, on one line and cut; it is nobody's fault but the provider's.
package oidc
