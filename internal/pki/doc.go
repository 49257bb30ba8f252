// SPDX-License-Identifier: Apache-2.0

// Package pki makes and keeps the certificates of one Wherry data folder.
//
// A CA is loaded from a folder or made there once; it signs serving certificates (for the API server and the node's own
// HTTPS API), client certificates (for people, nodes and the server itself) and requests. A Renewing is a certificate
// that a running server makes anew before it ends. Rotate puts a new CA in place of one, Finish ends the time in which
// both are good.
//
// Its law: keys are ECDSA P-256 and are written with mode 0600, complete or not at all; nothing but the CA is kept, so
// the server's own certificates are made anew at every start; a rotation that is cut off has either not taken place or
// is whole.
package pki
