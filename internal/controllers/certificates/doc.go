// SPDX-License-Identifier: Apache-2.0

// Package certificates answers CertificateSigningRequests: it approves those of nodes that join with a bootstrap token
// or renew their own certificate, signs what is approved for the three signers that any cluster has for its API and its
// nodes, and removes completed requests.
//
// Decide says what to do with a request, Template what its signer makes of it; Controller does it. The law: nothing is
// signed unless somebody has approved it, and no certificate contains more than the request's signer allows (Kubernetes
// docs: "Certificates and Certificate Signing Requests").
package certificates
