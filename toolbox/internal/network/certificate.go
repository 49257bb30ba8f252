// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // for fingerprints that others wrote down
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// certTime is how openssl writes times.
const certTime = "Jan _2 15:04:05 2006 GMT"

// lasts says in words how long a certificate is still good.
func lasts(c *x509.Certificate, now time.Time) string {
	days := func(d time.Duration) string {
		if d < 48*time.Hour {
			return d.Round(time.Minute).String()
		}
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
	switch {
	case now.After(c.NotAfter):
		return "EXPIRED " + days(now.Sub(c.NotAfter)) + " ago"
	case now.Before(c.NotBefore):
		return "NOT YET VALID, in " + days(c.NotBefore.Sub(now))
	}
	return "in " + days(c.NotAfter.Sub(now))
}

// alternatives are the names and addresses that a certificate is for.
func alternatives(c *x509.Certificate) (out []string) {
	for _, n := range c.DNSNames {
		out = append(out, "DNS:"+inLine(n))
	}
	for _, ip := range c.IPAddresses {
		out = append(out, "IP Address:"+ip.String())
	}
	for _, n := range c.EmailAddresses {
		out = append(out, "email:"+inLine(n))
	}
	for _, u := range c.URIs {
		out = append(out, "URI:"+inLine(u.String()))
	}
	return out
}

func keyWords(c *x509.Certificate) string {
	switch k := c.PublicKey.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d bit", k.N.BitLen())
	case *ecdsa.PublicKey:
		return "ECDSA " + k.Curve.Params().Name
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return c.PublicKeyAlgorithm.String()
}

// tell writes what s_client is for.
func (t *tlsClient) tell(s tls.ConnectionState, verdict error, name string) {
	now := time.Now()
	word := "OK, also for the name " + name
	if verdict != nil {
		word = "FAILED: " + strings.ReplaceAll(verdict.Error(), "\n", "; ")
	}
	if !t.brief {
		t.Println("---\nCertificate chain")
		for i, c := range s.PeerCertificates {
			t.Printf(" %d s:%s\n   i:%s\n   a:PKEY: %s; sigalg: %s\n   v:NotBefore: %s; NotAfter: %s (%s)\n",
				i, inLine(c.Subject.String()), inLine(c.Issuer.String()), keyWords(c), c.SignatureAlgorithm,
				c.NotBefore.UTC().Format(certTime), c.NotAfter.UTC().Format(certTime), lasts(c, now))
			if t.chain {
				_ = pem.Encode(t.Out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
			}
		}
		t.Println("---\nServer certificate")
	}
	if len(s.PeerCertificates) > 0 {
		own := s.PeerCertificates[0]
		if !t.brief && !t.chain {
			_ = pem.Encode(t.Out, &pem.Block{Type: "CERTIFICATE", Bytes: own.Raw})
		}
		t.Printf("subject=%s\nissuer=%s\n", inLine(own.Subject.String()), inLine(own.Issuer.String()))
		t.Printf("names=%s\nexpires=%s (%s)\n", strings.Join(alternatives(own), ", "),
			own.NotAfter.UTC().Format(certTime), lasts(own, now))
	}
	if !t.brief {
		t.Println("---")
	}
	t.Printf("Protocol: %s\nCipher: %s\n", tls.VersionName(s.Version), tls.CipherSuiteName(s.CipherSuite))
	if s.CurveID != 0 {
		t.Printf("Key exchange: %s\n", s.CurveID)
	}
	protocol := s.NegotiatedProtocol
	if protocol == "" {
		protocol = "none agreed on"
	}
	t.Printf("ALPN: %s\nVerification: %s\n", protocol, word)
	if !t.brief {
		t.Println("---")
	}
}

// x509Show shows a certificate.
func x509Show(c *applet.Call) error {
	in := c.String(",in", "FILE", "-", "where it is; default: standard input")
	c.String(",inform", "FORMAT", "", "does nothing: PEM and DER are told apart")
	none, text := c.Bool(",noout", "not the certificate itself"), c.Bool(",text", "all in words")
	var ask []string
	for _, w := range [][2]string{{"subject", "whose it is"}, {"issuer", "who signed it"},
		{"dates", "from when until when it is good"}, {"startdate", "from when"},
		{"enddate", "until when"}, {"serial", "its number"}, {"fingerprint", "its SHA-256 sum; with -sha1 that"}} {
		c.Do(","+w[0], w[1], func() { ask = append(ask, w[0]) })
	}
	old := c.Bool(",sha1", "the fingerprint by SHA-1")
	c.Bool(",sha256", "the fingerprint by SHA-256 (the default)")
	ext := c.String(",ext", "NAME", "", "subjectAltName")
	left := c.Int(",checkend", "SECONDS", -1, "exit code 1 if it expires within that time")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	if *ext != "" && *ext != "subjectAltName" {
		return applet.Usage("-ext %q is not known here: subjectAltName is", *ext)
	}
	cert, err := readCertificate(c, *in)
	if err != nil {
		return err
	}
	if *text {
		describeCertificate(c, cert)
	}
	for _, a := range ask {
		describeField(c, cert, a, *old)
	}
	if *ext != "" {
		c.Printf("X509v3 Subject Alternative Name:\n    %s\n", strings.Join(alternatives(cert), ", "))
	}
	if *left >= 0 {
		if cert.NotAfter.Before(time.Now().Add(seconds(float64(*left)))) {
			c.Println("Certificate will expire")
			return applet.Exit(1)
		}
		c.Println("Certificate will not expire")
		return nil
	}
	if !*none {
		return pem.Encode(c.Out, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	}
	return nil
}

// readCertificate takes the first certificate of a file, whatever text is before it.
func readCertificate(c *applet.Call, name string) (*x509.Certificate, error) {
	file, err := c.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" || block.Type == "TRUSTED CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	cert, err := x509.ParseCertificate(data)
	if err != nil {
		return nil, errors.New("there is no certificate in the input, neither in PEM nor in DER")
	}
	return cert, nil
}

func describeField(c *applet.Call, cert *x509.Certificate, what string, old bool) {
	start, end := cert.NotBefore.UTC().Format(certTime), cert.NotAfter.UTC().Format(certTime)
	switch what {
	case "subject":
		c.Printf("subject=%s\n", inLine(cert.Subject.String()))
	case "issuer":
		c.Printf("issuer=%s\n", inLine(cert.Issuer.String()))
	case "dates":
		c.Printf("notBefore=%s\nnotAfter=%s\n", start, end)
	case "startdate":
		c.Printf("notBefore=%s\n", start)
	case "enddate":
		c.Printf("notAfter=%s\n", end)
	case "serial":
		c.Printf("serial=%X\n", cert.SerialNumber)
	case "fingerprint":
		if old {
			sum := sha1.Sum(cert.Raw) //nolint:gosec // asked for
			c.Printf("sha1 Fingerprint=%s\n", colons(sum[:]))
			return
		}
		sum := sha256.Sum256(cert.Raw)
		c.Printf("sha256 Fingerprint=%s\n", colons(sum[:]))
	}
}

func colons(b []byte) string {
	return string(bytes.ReplaceAll(fmt.Appendf(nil, "% X", b), []byte(" "), []byte(":")))
}

func describeCertificate(c *applet.Call, cert *x509.Certificate) {
	c.Printf("Certificate:\n    Version: %d\n    Serial Number: %X\n    Signature Algorithm: %s\n    Issuer: %s\n",
		cert.Version, cert.SerialNumber, cert.SignatureAlgorithm, inLine(cert.Issuer.String()))
	c.Printf("    Validity\n        Not Before: %s\n        Not After : %s (%s)\n    Subject: %s\n    Public Key: %s\n",
		cert.NotBefore.UTC().Format(certTime), cert.NotAfter.UTC().Format(certTime), lasts(cert, time.Now()),
		inLine(cert.Subject.String()), keyWords(cert))
	var uses []string
	for i, name := range []string{"Digital Signature", "Non Repudiation", "Key Encipherment", "Data Encipherment",
		"Key Agreement", "Certificate Sign", "CRL Sign"} {
		if cert.KeyUsage&(1<<i) != 0 {
			uses = append(uses, name)
		}
	}
	for _, u := range cert.ExtKeyUsage {
		if name, ok := map[x509.ExtKeyUsage]string{x509.ExtKeyUsageServerAuth: "TLS server",
			x509.ExtKeyUsageClientAuth: "TLS client"}[u]; ok {
			uses = append(uses, name)
		}
	}
	c.Printf("    Usage: %s\n    CA: %t\n    Subject Alternative Name: %s\n", strings.Join(uses, ", "), cert.IsCA,
		strings.Join(alternatives(cert), ", "))
	if len(cert.SubjectKeyId) > 0 {
		c.Printf("    Subject Key Identifier: %s\n", colons(cert.SubjectKeyId))
	}
	if len(cert.AuthorityKeyId) > 0 {
		c.Printf("    Authority Key Identifier: %s\n", colons(cert.AuthorityKeyId))
	}
}
