// SPDX-License-Identifier: Apache-2.0

// Package credentials gets and keeps the certificates of an agent that works for somebody else's API server: the one by which it is
// known there, asked for with a bootstrap kubeconfig when it joins, and the one its own API shows.
//
// Join makes the agent's kubeconfig usable and gives the Client that renews its certificate; Serving asks for the other. Both ask by
// CertificateSigningRequest, through client-go's certificate manager, as the kubelet does. The law: a key never leaves the machine,
// its file has mode 0600, and a renewal needs no restart.
package credentials
