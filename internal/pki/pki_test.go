// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A client and a server whose certificates come from the same CA, loaded twice from its folder, accept one another.
func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	first, err := LoadOrCreate(dir, "test-ca")
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadOrCreate(dir, "ignored")
	if err != nil {
		t.Fatal(err)
	}
	if string(first.CertPEM()) != string(again.CertPEM()) {
		t.Fatal("a second load made another CA")
	}
	certPEM, keyPEM, err := first.Serving([]string{"localhost"}, []net.IP{net.ParseIP("127.0.0.1")})
	if err != nil {
		t.Fatal(err)
	}
	serving, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err = again.Client("jane", []string{"a", "b"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	client, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}

	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		w.Header().Set("User", subject.CommonName+"/"+strings.Join(subject.Organization, ","))
	}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, ClientCAs: first.Pool(), ClientAuth: tls.RequireAndVerifyClientCert}
	srv.StartTLS()
	defer srv.Close()

	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: again.Pool(), Certificates: []tls.Certificate{client}}}}
	defer c.CloseIdleConnections()
	resp, err := c.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("User"); got != "jane/a,b" && got != "jane/b,a" {
		t.Errorf("server saw %q", got)
	}
}

func TestFilesOfTheCA(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if _, err := LoadOrCreate(dir, "test-ca"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("ca.key has mode %v", info.Mode())
	}
	if err := os.Remove(filepath.Join(dir, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreate(dir, "test-ca"); err == nil || !strings.Contains(err.Error(), "ca.crt") {
		t.Errorf("a key without certificate: %v", err)
	}
	other := t.TempDir()
	ca, err := LoadOrCreate(other, "other")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), ca.CertPEM(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreate(dir, "test-ca"); err == nil || !strings.Contains(err.Error(), "does not belong") {
		t.Errorf("a certificate of another key: %v", err)
	}
}

func TestKeyIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sa.key")
	first, err := LoadOrCreateKey(file)
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadOrCreateKey(file)
	if err != nil {
		t.Fatal(err)
	}
	if !first.Equal(second) {
		t.Error("another key on the second load")
	}
	if err := os.WriteFile(file, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreateKey(file); err == nil {
		t.Error("junk was accepted as a key")
	}
}

func TestSignedByTheCA(t *testing.T) {
	ca, err := LoadOrCreate(t.TempDir(), "test-ca")
	if err != nil {
		t.Fatal(err)
	}
	certPEM, _, err := ca.Client("x", nil, 100*365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := parseCert(certPEM)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: ca.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if cert.NotAfter.After(ca.cert.NotAfter) {
		t.Error("the leaf outlives its CA")
	}
}
