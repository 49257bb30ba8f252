// SPDX-License-Identifier: Apache-2.0

// Package podcertificates signs the certificates that pods ask for from the signer wherry.dev/pod
// (docs/decisions/060), and removes requests for certificates, of every signer, when they are old.
//
// Controller starts with the first request. Decide and Template decide; an authority of its own signs, which is made
// then, and whose certificate is in the ClusterTrustBundle wherry.dev:pod:ca.
//
// Its law: a certificate says no more of a pod than what the API knows of it: its account, and the services that select
// it. The API server does not trust this authority, so that no pod becomes a user of the API by it.
package podcertificates
