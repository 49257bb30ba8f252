// SPDX-License-Identifier: Apache-2.0

// Package certificates holds the rules of CertificateSigningRequest, and reads the request that is in one: ParseRequest
// is used wherever a request is judged, so that nobody judges what another reads otherwise.
//
// Its law is that of package validation: pure functions, nothing panics, and nothing is changed.
//
// Pure.
package certificates
