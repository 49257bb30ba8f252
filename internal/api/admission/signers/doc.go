// SPDX-License-Identifier: Apache-2.0

// Package signers is the admission plug-in for what is signed: who approves or signs a request for a certificate, or
// says whom to trust for a signer, needs the right to that signer.
//
// A Plugin is Kubernetes' CertificateApproval, CertificateSigning, CertificateSubjectRestriction and
// ClusterTrustBundleAttest in one.
//
// Its law: no right to write these objects stands in for the right to the signer, and nobody becomes a member of
// system:masters by a request.
package signers
