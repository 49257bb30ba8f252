// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// PKI is an authority.
type PKI struct {
	t    testing.TB
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// CertRequest is what a certificate is to say.
type CertRequest struct {
	Name  string // common name
	DNS   string
	Usage []x509.ExtKeyUsage
	Until time.Time // default: in an hour
}

// NewPKI makes an authority.
func NewPKI(t testing.TB) *PKI {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "wherry-debug-ca"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &PKI{t, cert, key}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Sign makes a certificate with a key of its own.
func (p *PKI) Sign(w CertRequest) *tls.Certificate {
	p.t.Helper()
	key := newKey(p.t)
	return &tls.Certificate{Certificate: [][]byte{p.SignKey(w, &key.PublicKey)}, PrivateKey: key}
}

// SignKey makes a certificate of a key, as DER.
func (p *PKI) SignKey(w CertRequest, key any) []byte {
	p.t.Helper()
	if w.Until.IsZero() {
		w.Until = time.Now().Add(time.Hour)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject: pkix.Name{CommonName: w.Name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: w.Until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: w.Usage}
	if w.DNS != "" {
		template.DNSNames = []string{w.DNS}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.Cert, key, p.key)
	if err != nil {
		p.t.Fatal(err)
	}
	return der
}

// Agent makes the certificate of a node's agent.
func (p *PKI) Agent(node string) *tls.Certificate {
	return p.Sign(CertRequest{Name: wire.AgentPrefix + node, DNS: wire.ServerName(node),
		Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

// API makes the API's certificate.
func (p *PKI) API() *tls.Certificate {
	return p.Sign(CertRequest{Name: wire.APIName, Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// Pool has the authority alone.
func (p *PKI) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(p.Cert)
	return pool
}

// Files writes the certificate of a node's agent, its key and the authority, as the agent's flags name them.
func (p *PKI) Files(node string) (flags []string) {
	p.t.Helper()
	cert := p.Agent(node)
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		p.t.Fatal(err)
	}
	dir := p.t.TempDir()
	for _, f := range []struct {
		flag, kind string
		der        []byte
	}{{"cert", "CERTIFICATE", cert.Certificate[0]}, {"key", "PRIVATE KEY", key}, {"ca", "CERTIFICATE", p.Cert.Raw}} {
		path := filepath.Join(dir, f.flag)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der}), 0o600); err != nil {
			p.t.Fatal(err)
		}
		flags = append(flags, "--"+f.flag, path)
	}
	return flags
}
