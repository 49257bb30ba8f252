// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
)

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// Identity: requests that nobody can have meant, or that would cost the server too much, are refused before anything is done with them.
func TestParseRequest(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	good := pemOf("CERTIFICATE REQUEST", der)
	forged := append([]byte(nil), der...)
	forged[len(forged)-1] ^= 1
	for name, c := range map[string]struct{ text, err string }{
		"good":             {good, ""},
		"with white space": {"\n" + good + "\n", ""},
		"empty":            {"", "PEM block type"},
		"no PEM":           {"x", "PEM block type"},
		"another block":    {pemOf("CERTIFICATE", der), "PEM block type"},
		"two":              {good + good, "nothing after it"},
		"junk":             {pemOf("CERTIFICATE REQUEST", []byte("junk")), "asn1"},
		"forged":           {pemOf("CERTIFICATE REQUEST", forged), "the signature is not that of the key"},
		"a huge RSA key":   {pemOf("CERTIFICATE REQUEST", hugeRSA(t)), "at most 8192 are accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseRequest([]byte(c.text))
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want %q", err, c.err)
			}
		})
	}
}

// hugeRSA is a request with an RSA key of 16384 bits, which has no private half, and a signature that is none.
func hugeRSA(t *testing.T) []byte {
	t.Helper()
	n := new(big.Int).Lsh(big.NewInt(1), 16383)
	n.SetBit(n, 0, 1)
	public, err := asn1.Marshal(struct {
		N *big.Int
		E int
	}{n, 65537})
	if err != nil {
		t.Fatal(err)
	}
	rsa := pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, Parameters: asn1.NullRawValue}
	type publicKey struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	type request struct {
		Version    int
		Subject    pkix.RDNSequence
		Key        publicKey
		Attributes []asn1.RawValue `asn1:"tag:0"`
	}
	der, err := asn1.Marshal(struct {
		Request   request
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		request{Subject: pkix.Name{CommonName: "x"}.ToRDNSequence(), Key: publicKey{rsa, asn1.BitString{Bytes: public, BitLength: 8 * len(public)}}},
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}, Parameters: asn1.NullRawValue},
		asn1.BitString{Bytes: make([]byte, 2048), BitLength: 8 * 2048},
	})
	if err != nil {
		t.Fatal(err)
	}
	return der
}
