// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
)

// FuzzParseRequest: anybody may send a request. What is taken is signed by its own key, which costs no more than it may,
// and is the same when it is written anew; and no object with anything else is valid (RS-07).
func FuzzParseRequest(f *testing.F) {
	_, small, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	name := pkix.Name{CommonName: "system:node:n", Organization: []string{"system:nodes"}}
	for _, key := range []any{small, curve} {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: name, DNSNames: []string{"n"}}, key)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(pemOf("CERTIFICATE REQUEST", der)), false)
		f.Add(der, true)
		f.Add([]byte(pemOf("NEW CERTIFICATE REQUEST", der)+"x"), false)
	}
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nA: b\n\n-----END CERTIFICATE REQUEST-----"), false)
	f.Add([]byte{0x30, 0x80}, true)
	f.Fuzz(func(t *testing.T, data []byte, der bool) {
		if der { // so that what is in the block is changed, and not its letters
			data = []byte(pemOf("CERTIFICATE REQUEST", data))
		}
		csr, err := ParseRequest(data)
		if (err == nil) != (csr != nil) {
			t.Fatalf("%v, %v", csr, err)
		}
		if err != nil {
			return
		}
		if key, ok := csr.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
			t.Errorf("a key of %d bits is taken", key.N.BitLen())
		}
		if err := csr.CheckSignature(); err != nil {
			t.Error(err)
		}
		again, err := ParseRequest(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr.Raw}))
		if err != nil || !bytes.Equal(again.Raw, csr.Raw) {
			t.Errorf("written anew: %v", err)
		}
	})
}
