// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzFiles: whatever a file of certificates or keys holds, it is read or refused with its name. What is read comes out as it went in:
// certificates byte for byte and in order, a private key with its own public one.
func FuzzFiles(f *testing.F) {
	ca, err := LoadOrCreate(f.TempDir(), "fuzz")
	if err != nil {
		f.Fatal(err)
	}
	cert, key, err := ca.Serving([]string{"a.example"}, nil)
	if err != nil {
		f.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(ca.cert.PublicKey)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range [][]byte{
		cert, key, append(bytes.Clone(cert), ca.CertPEM()...), append([]byte("text before\n"), cert...), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		cert[:len(cert)/2], nil, []byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), bytes.ReplaceAll(cert, []byte("CERTIFICATE"), []byte("X509 CRL")),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "file.pem")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		named := func(err error) {
			if !strings.Contains(err.Error(), file) {
				t.Errorf("not said in which file: %v", err)
			}
		}
		if certs, err := ReadCertificates(file); err != nil {
			named(err)
		} else {
			var out []byte
			for _, c := range certs {
				out = append(out, encodeCert(c.Raw)...)
			}
			again, err := ParseCertificates(out)
			if err != nil || len(certs) == 0 || len(again) != len(certs) || !again[len(again)-1].Equal(certs[len(certs)-1]) {
				t.Errorf("%d certificates are then %d: %v", len(certs), len(again), err)
			}
		}
		if signer, err := LoadKey(file); err != nil {
			named(err)
		} else if public, ok := signer.Public().(*ecdsa.PublicKey); ok {
			encoded, err := encodeKey(signer.(*ecdsa.PrivateKey))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, encoded, 0o600); err != nil {
				t.Fatal(err)
			}
			if again, err := LoadKey(file); err != nil || !public.Equal(again.Public()) {
				t.Errorf("it is another key when it was written: %v", err)
			}
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if keys, err := ReadPublicKeys(file); err != nil {
			named(err)
		} else if len(keys) > bytes.Count(text, []byte("-----BEGIN ")) {
			t.Errorf("%d keys of %d blocks", len(keys), bytes.Count(text, []byte("-----BEGIN ")))
		}
	})
}
