// SPDX-License-Identifier: Apache-2.0

// Package authority has the certificates of debugging on clusters: those of the API, and those of the agents.
//
// [Load] takes the [Authority] from a Secret of the API's namespace, or fills the Secret that is empty. The API's own
// certificates are made in memory and renewed ([Authority.Run]), and its APIService gets the CA to trust. [Signer]
// signs the requests of agents: [Judge] decides.
//
// Its law: a certificate for an agent is made for the node on which the pod runs that asks, as kube-apiserver knows it
// by the pod's bound token, and for nothing else (DA-07). It is for serving alone: no agent's certificate opens another
// agent. Nobody's approval takes the place of the judgement.
package authority
