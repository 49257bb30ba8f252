// SPDX-License-Identifier: Apache-2.0

// Package identity keeps an agent's certificate (DA-07): [Keeper.Run] makes a key, asks the cluster for a certificate
// by a CertificateSigningRequest, waits until it is signed or denied, and asks again before it is over. Whom the agent
// trusts it learns from the answer, whose second certificate is the authority.
//
// Its law: the key never leaves the process, the service account's token is sent to nobody but kube-apiserver, and an
// answer is taken only if it is for this key, this node, and serving alone. It imports nothing that takes a program
// time to start.
package identity
