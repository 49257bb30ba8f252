// SPDX-License-Identifier: Apache-2.0

// Package credentials gets and keeps the certificates of an agent that works for somebody else's API server: the client
// certificate that identifies it there, requested with a bootstrap kubeconfig when it joins, and the serving
// certificate of its own API.
//
// Join makes the agent's kubeconfig usable and returns the Client that renews its certificate; Serving requests the
// other. Both use CertificateSigningRequests, through client-go's certificate manager, as the kubelet does. The law: a
// key never leaves the machine, its file has mode 0600, and a renewal needs no restart.
package credentials
