// SPDX-License-Identifier: Apache-2.0

// Package pki makes and keeps the certificates of one Wherry data folder.
//
// A CA is loaded from a folder or made there once; it signs serving certificates (for the API server and the node's own HTTPS
// API) and client certificates (for people, nodes and the server itself).
//
// Its law: keys are ECDSA P-256 and are written with mode 0600, complete or not at all; nothing but the CA is kept, so leaf
// certificates are made anew at every start and never expire in the middle of their life.
package pki
