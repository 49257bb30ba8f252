// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"cmp"
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
	"slices"
	"time"
)

const (
	caLifetime = 10 * 365 * 24 * time.Hour
	// ServingLifetime is that of a server's certificate, which a running server makes anew when four fifths of it are
	// over.
	ServingLifetime = 365 * 24 * time.Hour
	// clockSkew lets clients whose clock is a little behind accept a certificate made this second.
	clockSkew = time.Hour
)

// Names of the files in a CA's folder.
const (
	certFile   = "ca.crt"
	keyFile    = "ca.key"
	formerFile = "ca-former.crt" // the CA before, still trusted; there only while a rotation is not finished
	crossFile  = "ca-cross.crt"  // this CA's key, signed by the CA before, for those who know only that one
	nextSuffix = ".next"         // what a rotation is about to put in place
)

// CA is a certificate authority whose key lies in a folder. It is safe for concurrent use.
type CA struct {
	cert   *x509.Certificate
	pem    []byte
	key    crypto.Signer
	former []*x509.Certificate // still trusted
	cross  []byte              // PEM; goes with every certificate that is signed
}

// LoadOrCreate reads <dir>/ca.crt and <dir>/ca.key, or makes them when both are missing; name is the common name of a
// new CA. A folder with only one of the two, or with files that do not belong together, is an error: guessing would
// lock clients out.
func LoadOrCreate(dir string, name string) (*CA, error) {
	if err := finishRotation(dir); err != nil {
		return nil, fmt.Errorf("certificate authority in %s: %w", dir, err)
	}
	ca, err := Load(dir)
	if errors.Is(err, errNone) {
		return create(dir, name)
	}
	return ca, err
}

// errNone says that a folder holds no CA.
var errNone = errors.New("there is no certificate authority")

// Load reads the CA of a folder and makes none; it writes nothing.
func Load(dir string) (*CA, error) {
	file := filepath.Join(dir, certFile)
	certPEM, certErr := os.ReadFile(file)
	key, keyErr := LoadKey(filepath.Join(dir, keyFile))
	switch {
	case errors.Is(certErr, fs.ErrNotExist) && errors.Is(keyErr, fs.ErrNotExist):
		return nil, fmt.Errorf("%w in %s", errNone, dir)
	case certErr != nil, keyErr != nil:
		return nil, unreadable(dir, cmp.Or(certErr, keyErr))
	}
	cert, err := parseCert(certPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", file, err)
	}
	if !cert.IsCA {
		return nil, fmt.Errorf("certificate authority %s: the certificate may not sign others", file)
	}
	if !sameKey(cert.PublicKey, key.Public()) {
		return nil, fmt.Errorf("certificate authority in %s: ca.key does not belong to ca.crt", dir)
	}
	ca := &CA{cert: cert, pem: certPEM, key: key}
	return ca, ca.loadFormer(dir)
}

// unreadable says what to do about a file of the CA that cannot be read. It never advises to remove the other one:
// whoever only lacks the right to read would destroy the authority that signed everything.
func unreadable(dir string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("certificate authority in %s: %w: only root may read it; run the command with sudo", dir, err)
	}
	return fmt.Errorf("certificate authority in %s: %w: put the file back from a backup", dir, err)
}

// loadFormer reads what a rotation that is not finished has left beside the CA.
func (c *CA) loadFormer(dir string) error {
	former, err := ReadCertificates(filepath.Join(dir, formerFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("certificate authority before: %w", err)
	}
	for _, cert := range former {
		if !cert.Equal(c.cert) { // a rotation that was cut off before it took place
			c.former = append(c.former, cert)
		}
	}
	cross, err := ReadCertificates(filepath.Join(dir, crossFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("certificate authority before: %w", err)
	}
	for _, cert := range cross {
		if sameKey(cert.PublicKey, c.key.Public()) {
			c.cross = append(c.cross, encodeCert(cert.Raw)...)
		}
	}
	return nil
}

func sameKey(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

func create(dir, name string) (*CA, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	ca, keyPEM, err := newCA(name)
	if err != nil {
		return nil, err
	}
	// As in a rotation: what is cut off before the key is in place never was, and finishRotation ends what is cut off
	// after that.
	cert := filepath.Join(dir, certFile)
	if err := WriteFile(cert+nextSuffix, ca.pem, 0o644); err != nil {
		return nil, err
	}
	if err := WriteFile(filepath.Join(dir, keyFile), keyPEM, 0o600); err != nil {
		return nil, err
	}
	return ca, os.Rename(cert+nextSuffix, cert)
}

// newCA makes a CA with a new key, in memory.
func newCA(name string) (*CA, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template, err := caTemplate(name)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err := encodeKey(key)
	return &CA{cert: cert, pem: encodeCert(der), key: key}, keyPEM, err
}

func caTemplate(name string) (*x509.Certificate, error) {
	now := time.Now()
	serial, err := newSerial()
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(caLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}, err
}

// CertPEM returns the certificates to trust in PEM form: the CA's own and, until a rotation is finished, the one
// before.
func (c *CA) CertPEM() []byte {
	bundle := slices.Clone(c.pem)
	for _, cert := range c.former {
		bundle = append(bundle, encodeCert(cert.Raw)...)
	}
	return bundle
}

// Pool returns a new pool that trusts what CertPEM holds, and nothing else.
func (c *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.cert)
	for _, cert := range c.former {
		pool.AddCert(cert)
	}
	return pool
}

// NotAfter is when the CA's own certificate ends, and with it every certificate it has signed.
func (c *CA) NotAfter() time.Time { return c.cert.NotAfter }

// Serving makes a server certificate for the given names and addresses, with a new key.
func (c *CA) Serving(dnsNames []string, ips []net.IP) (certPEM, keyPEM []byte, err error) {
	return c.ServingFor(dnsNames, ips, ServingLifetime)
}

// ServingFor is Serving with another lifetime.
func (c *CA) ServingFor(dnsNames []string, ips []net.IP, ttl time.Duration) (certPEM, keyPEM []byte, err error) {
	name := "wherry"
	if len(dnsNames) > 0 {
		name = dnsNames[0]
	}
	return c.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    dnsNames,
		IPAddresses: ips,
		NotAfter:    time.Now().Add(ttl),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// Client makes a client certificate: user becomes the common name, groups the organisations, as the API server reads
// them.
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
	template.NotBefore = time.Now().Add(-clockSkew)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if certPEM, err = c.Sign(template, key.Public()); err != nil {
		return nil, nil, err
	}
	keyPEM, err = encodeKey(key)
	return certPEM, keyPEM, err
}

// Sign signs a certificate for somebody else's key and gives it a serial number; it never outlives the CA. What is
// returned is the chain in PEM form, the certificate itself first.
func (c *CA) Sign(template *x509.Certificate, key crypto.PublicKey) (certPEM []byte, err error) {
	if template.SerialNumber, err = newSerial(); err != nil {
		return nil, err
	}
	if template.NotAfter.After(c.cert.NotAfter) {
		template.NotAfter = c.cert.NotAfter
	}
	template.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, key, c.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate for %s: %w", template.Subject.CommonName, err)
	}
	return append(encodeCert(der), c.cross...), nil
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
}

func parseCert(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("contains no PEM certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

// ReadCertificates reads all certificates of a PEM file.
func ReadCertificates(file string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	certs, err := ParseCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return certs, nil
}

// ParseCertificates reads all certificates of a PEM text and passes over what else is in it; there must be one.
func ParseCertificates(data []byte) (certs []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("contains no PEM certificate")
	}
	return certs, nil
}
