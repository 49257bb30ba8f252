// SPDX-License-Identifier: Apache-2.0

package podcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// newKey makes a key of a kind that the API names, and the request that proves that it is ours.
func newKey(kind string) (keyPEM, request []byte, err error) {
	key, err := generate(kind)
	if err != nil {
		return nil, nil, fmt.Errorf("key of type %s: %w", kind, err)
	}
	if request, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key); err != nil {
		return nil, nil, fmt.Errorf("request with a key of type %s: %w", kind, err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("key of type %s: %w", kind, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), request, nil
}

func generate(kind string) (crypto.PrivateKey, error) {
	switch kind {
	case "RSA3072":
		return rsa.GenerateKey(rand.Reader, 3072)
	case "RSA4096":
		return rsa.GenerateKey(rand.Reader, 4096)
	case "ECDSAP256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ECDSAP384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ECDSAP521":
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ED25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("this node does not know it")
}

// cleanChain is a chain without what may stand between its certificates, and without headers.
func cleanChain(chain []byte) (clean []byte) {
	for {
		var block *pem.Block
		if block, chain = pem.Decode(chain); block == nil {
			return clean
		}
		clean = append(clean, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})...)
	}
}
