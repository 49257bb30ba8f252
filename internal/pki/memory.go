// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// New makes a CA that lies in no folder, and its key in PEM form. It is for whoever keeps both elsewhere.
func New(name string) (ca *CA, keyPEM []byte, err error) { return newCA(name) }

// Parse reads a CA from its certificate and its key (PKCS#8), both in PEM form.
func Parse(certPEM, keyPEM []byte) (*CA, error) {
	cert, err := parseCert(certPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate of the authority: %w", err)
	}
	if !cert.IsCA {
		return nil, errors.New("certificate of the authority: it may not sign others")
	}
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("key of the authority: contains no PEM private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("key of the authority: %w", err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok || !sameKey(cert.PublicKey, key.Public()) {
		return nil, errors.New("key of the authority: it does not belong to the certificate")
	}
	return &CA{cert: cert, pem: encodeCert(cert.Raw), key: key}, nil
}
