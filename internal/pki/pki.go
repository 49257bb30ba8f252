// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	caLifetime      = 10 * 365 * 24 * time.Hour
	servingLifetime = 5 * 365 * 24 * time.Hour
	// clockSkew lets clients whose clock is a little behind accept a certificate made this second.
	clockSkew = time.Hour
)

// CA is a certificate authority whose key lies in a folder. It is safe for concurrent use.
type CA struct {
	cert *x509.Certificate
	pem  []byte
	key  crypto.Signer
}

// LoadOrCreate reads <dir>/ca.crt and <dir>/ca.key, or makes them when both are missing; name is the common name of a new CA.
// A folder with only one of the two, or with files that do not belong together, is an error: guessing would lock clients out.
func LoadOrCreate(dir string, name string) (*CA, error) {
	certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	certPEM, certErr := os.ReadFile(certFile)
	key, keyErr := LoadKey(keyFile)
	switch {
	case errors.Is(certErr, fs.ErrNotExist) && errors.Is(keyErr, fs.ErrNotExist):
		return create(dir, name)
	case certErr != nil:
		return nil, fmt.Errorf("certificate authority in %s: %w (restore it, or remove ca.key to make a new authority)", dir, certErr)
	case keyErr != nil:
		return nil, fmt.Errorf("certificate authority in %s: %w (restore it, or remove ca.crt to make a new authority)", dir, keyErr)
	}
	cert, err := parseCert(certPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", certFile, err)
	}
	if !cert.IsCA {
		return nil, fmt.Errorf("certificate authority %s: the certificate may not sign others", certFile)
	}
	if pub, ok := cert.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !pub.Equal(key.Public()) {
		return nil, fmt.Errorf("certificate authority in %s: ca.key does not belong to ca.crt", dir)
	}
	return &CA{cert: cert, pem: certPEM, key: key}, nil
}

func create(dir, name string) (*CA, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(caLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	// The key goes first: a crash in between leaves a key without certificate, which LoadOrCreate explains.
	if err := WriteFile(filepath.Join(dir, "ca.key"), keyPEM, 0o600); err != nil {
		return nil, err
	}
	if err := WriteFile(filepath.Join(dir, "ca.crt"), certPEM, 0o644); err != nil {
		return nil, err
	}
	return &CA{cert: cert, pem: certPEM, key: key}, nil
}

// CertPEM returns the CA's own certificate in PEM form.
func (c *CA) CertPEM() []byte { return append([]byte(nil), c.pem...) }

// Pool returns a new pool that trusts this CA alone.
func (c *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.cert)
	return pool
}

// Serving makes a server certificate for the given names and addresses, with a new key.
func (c *CA) Serving(dnsNames []string, ips []net.IP) (certPEM, keyPEM []byte, err error) {
	name := "wherry"
	if len(dnsNames) > 0 {
		name = dnsNames[0]
	}
	return c.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    dnsNames,
		IPAddresses: ips,
		NotAfter:    time.Now().Add(servingLifetime),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// Client makes a client certificate: user becomes the common name, groups the organisations, as the API server reads them.
func (c *CA) Client(user string, groups []string, ttl time.Duration) (certPEM, keyPEM []byte, err error) {
	return c.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		NotAfter:    time.Now().Add(ttl),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (c *CA) sign(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = newSerial(); err != nil {
		return nil, nil, err
	}
	template.NotBefore = time.Now().Add(-clockSkew)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if template.NotAfter.After(c.cert.NotAfter) {
		template.NotAfter = c.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, key.Public(), c.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign certificate for %s: %w", template.Subject.CommonName, err)
	}
	if keyPEM, err = encodeKey(key); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM, nil
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
}

func parseCert(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("holds no PEM certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}
