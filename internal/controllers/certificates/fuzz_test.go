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
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/wherryproject/wherry/internal/pki"
)

// FuzzTemplate: whatever subject and usages are asked for, each signer's certificate is only what that signer stands for. What was checked is
// what the certificate says when it is read again, however its subject was encoded: a node's is a node's and nobody else's, none is an
// authority's, and none lasts longer than it may.
func FuzzTemplate(f *testing.F) {
	ca, err := pki.LoadOrCreate(f.TempDir(), "fuzz")
	if err != nil {
		f.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	signers := []string{certificatesv1.KubeAPIServerClientSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName,
		certificatesv1.KubeletServingSignerName, "example.com/other"}
	add := func(signer uint8, seconds int32, names string, rdn pkix.RDNSequence) {
		raw, err := asn1.Marshal(rdn)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(signer, seconds, uint8(7), names, raw)
	}
	cn, org := asn1.ObjectIdentifier{2, 5, 4, 3}, asn1.ObjectIdentifier{2, 5, 4, 10}
	node := nodeSubjectOf("a").ToRDNSequence()
	add(1, 3600, "", node)
	add(2, 600, "a.example", node)
	add(0, -1, "", pkix.Name{CommonName: "jane", Organization: []string{"dev"}}.ToRDNSequence())
	add(0, 1<<30, "", append(slices.Clone(node), pkix.RelativeDistinguishedNameSET{{Type: cn, Value: "system:node:b"}}))
	add(1, 0, "", pkix.RDNSequence{{{Type: org, Value: "system:nodes"}, {Type: org, Value: "system:masters"}, {Type: cn,
		Value: "system:node:"}}})
	add(0, 600, "", pkix.RDNSequence{{{Type: cn, Value: "jane"}}, {{Type: org, Value: "b"}}, {{Type: org, Value: "a"}}})
	f.Fuzz(func(t *testing.T, signer uint8, seconds int32, usages uint8, name string, subject []byte) {
		ask := x509.CertificateRequest{RawSubject: subject}
		if name != "" {
			ask.DNSNames = []string{name}
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &ask, key)
		if err != nil {
			return // no subject
		}
		r := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: signers[int(signer)%len(signers)],
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), ExpirationSeconds: &seconds}}
		for i, u := range []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
			certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth, certificatesv1.UsageCertSign} {
			if usages&(1<<i) != 0 {
				r.Spec.Usages = append(r.Spec.Usages, u)
			}
		}
		if seconds < 600 {
			r.Spec.ExpirationSeconds = nil // the API refuses it
		}
		now := time.Now()
		template, csr, err := Template(r, now, time.Hour)
		if err != nil {
			return
		}
		text, err := ca.Sign(template, csr.PublicKey)
		if err != nil {
			return // what a certificate cannot hold
		}
		certs, err := pki.ParseCertificates(text)
		if err != nil {
			t.Fatal(err)
		}
		cert := certs[0]
		isNode := slices.Equal(cert.Subject.Organization, []string{"system:nodes"}) &&
			strings.HasPrefix(cert.Subject.CommonName, "system:node:") && cert.Subject.CommonName != "system:node:"
		serves, asks := slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth), slices.Contains(cert.ExtKeyUsage,
			x509.ExtKeyUsageClientAuth)
		switch {
		case cert.Subject.CommonName != csr.Subject.CommonName || !sameNames(cert.Subject.Organization, csr.Subject.Organization):
			t.Errorf("%v was asked for, %v is certified", csr.Subject, cert.Subject)
		case cert.IsCA || cert.KeyUsage&x509.KeyUsageCertSign != 0 || serves == asks || cert.NotAfter.After(now.Add(time.Hour+time.Second)):
			t.Errorf("authority %v, usages %v, until %v", cert.IsCA, cert.ExtKeyUsage, cert.NotAfter)
		case r.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName && !isNode:
			t.Errorf("%s certifies %v", r.Spec.SignerName, cert.Subject)
		case serves != (r.Spec.SignerName == certificatesv1.KubeletServingSignerName):
			t.Errorf("%s: serves: %v", r.Spec.SignerName, serves)
		}
	})
}

// sameNames: the organisations of a subject are groups, which have no order. They are written as a SET, which DER sorts (X.690, 11.6).
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
