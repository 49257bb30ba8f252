// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// visit makes a mutual TLS connection: a server of one CA, a client that shows a certificate of another and trusts a pool.
func visit(t *testing.T, server, client *CA, serverTrusts, clientTrusts *x509.CertPool) error {
	t.Helper()
	certPEM, keyPEM, err := server.Serving([]string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	serving, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	if certPEM, keyPEM, err = client.Client("jane", nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	shown, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ErrorLog = quiet()
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, ClientCAs: serverTrusts, ClientAuth: tls.RequireAndVerifyClientCert}
	srv.StartTLS()
	defer srv.Close()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: clientTrusts, Certificates: []tls.Certificate{shown}}}}
	defer c.CloseIdleConnections()
	resp, err := c.Get(srv.URL)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func load(t *testing.T, dir string) *CA {
	t.Helper()
	ca, err := LoadOrCreate(dir, "test-ca")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// Identity: while a rotation is not finished, everybody who trusted the former CA goes on as before, on both sides of a connection;
// after it nobody does.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	old := load(t, dir)
	if _, err := LoadOrCreateKey(filepath.Join(dir, AccountKeyFile)); err != nil {
		t.Fatal(err)
	}
	before, err := LoadKey(filepath.Join(dir, AccountKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := Rotate(dir); err != nil {
		t.Fatal(err)
	}
	now := load(t, dir)
	if now.cert.Equal(old.cert) {
		t.Fatal("the CA is the same")
	}
	for name, err := range map[string]error{
		"a client that knows the former CA only": visit(t, now, now, now.Pool(), old.Pool()),
		"a client certificate of the former CA":  visit(t, now, old, now.Pool(), now.Pool()),
		"a server that knows the former CA only": visit(t, old, now, old.Pool(), old.Pool()),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if certs, err := ParseCertificates(now.CertPEM()); err != nil || len(certs) != 2 || !certs[0].Equal(now.cert) {
		t.Errorf("bundle of %d certificates, %v", len(certs), err)
	}
	former, err := ReadPublicKeys(filepath.Join(dir, FormerAccountKeys))
	if err != nil || len(former) != 1 || !sameKey(former[0], before.Public()) {
		t.Errorf("former account keys: %v, %v", former, err)
	}
	for _, name := range []string{keyFile, AccountKeyFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := Rotate(dir); !errors.Is(err, ErrRotating) {
		t.Errorf("a second rotation: %v", err)
	}
	if done, err := Finish(dir); err != nil || !done {
		t.Fatal(done, err)
	}
	now = load(t, dir)
	for name, err := range map[string]error{
		"a client that knows the former CA only": visit(t, now, now, now.Pool(), old.Pool()),
		"a client certificate of the former CA":  visit(t, now, old, now.Pool(), now.Pool()),
	} {
		if err == nil {
			t.Errorf("%s is accepted after the end", name)
		}
	}
	if err := visit(t, now, now, now.Pool(), now.Pool()); err != nil {
		t.Error(err)
	}
	if done, err := Finish(dir); err != nil || done {
		t.Errorf("nothing to finish: %v, %v", done, err)
	}
}

// Identity: an end that was cut off is brought to its end, and told, by doing it again: nobody takes it for done before.
// ATTACK C30.
func TestFinishCutOff(t *testing.T) {
	dir := t.TempDir()
	load(t, dir)
	if err := Rotate(dir); err != nil {
		t.Fatal(err)
	}
	block := filepath.Join(dir, FormerAccountKeys, "x") // a folder that is not empty cannot be removed
	if err := os.MkdirAll(block, 0o700); err != nil {
		t.Fatal(err)
	}
	if done, err := Finish(dir); err == nil || done {
		t.Errorf("%v, %v", done, err)
	}
	if err := os.Remove(block); err != nil {
		t.Fatal(err)
	}
	if done, err := Finish(dir); err != nil || !done {
		t.Errorf("again: %v, %v", done, err)
	}
}

// Identity: a rotation that is cut off at any of its writes leaves a folder that loads, with a CA that is trusted.
// ATTACK C30.
func TestRotationCutOff(t *testing.T) {
	for name, undo := range map[string]func(dir string, old, next []byte) error{
		"before the key": func(dir string, old, next []byte) error {
			key, err := os.ReadFile(filepath.Join(dir, keyFile))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, keyFile+nextSuffix), key, 0o600), os.WriteFile(filepath.Join(dir, keyFile), old, 0o600),
				os.Rename(filepath.Join(dir, certFile), filepath.Join(dir, certFile+nextSuffix)), os.WriteFile(filepath.Join(dir, certFile), next, 0o644))
		},
		"between key and certificate": func(dir string, _, cert []byte) error {
			return errors.Join(os.Rename(filepath.Join(dir, certFile), filepath.Join(dir, certFile+nextSuffix)), os.WriteFile(filepath.Join(dir, certFile), cert, 0o644))
		},
		"before both, with only the certificate written": func(dir string, old, cert []byte) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, keyFile), old, 0o600),
				os.Rename(filepath.Join(dir, certFile), filepath.Join(dir, certFile+nextSuffix)), os.WriteFile(filepath.Join(dir, certFile), cert, 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			old := load(t, dir)
			key, err := os.ReadFile(filepath.Join(dir, keyFile))
			if err != nil {
				t.Fatal(err)
			}
			if err := Rotate(dir); err != nil {
				t.Fatal(err)
			}
			if err := undo(dir, key, old.pem); err != nil {
				t.Fatal(err)
			}
			again := load(t, dir)
			if err := visit(t, again, again, again.Pool(), old.Pool()); err != nil {
				t.Errorf("who trusted the CA before: %v", err)
			}
			for _, f := range []string{certFile, keyFile} {
				if _, err := os.Stat(filepath.Join(dir, f+nextSuffix)); err == nil {
					t.Errorf("%s is left", f+nextSuffix)
				}
			}
			if again.cert.Equal(old.cert) != (name != "between key and certificate") {
				t.Errorf("the CA is %s", again.cert.Subject)
			}
		})
	}
}

// The authorities beside the server's own are rotated and finished with it, those that are there; a run that was cut off
// between them goes on.
func TestRotateAll(t *testing.T) {
	dir := t.TempDir()
	load := func(beside, name string) *CA {
		t.Helper()
		ca, err := LoadOrCreate(filepath.Join(dir, beside), name)
		if err != nil {
			t.Fatal(err)
		}
		return ca
	}
	load("", "wherry-ca")
	pods := load(PodsDir, "wherry-pods-ca")
	if err := Rotate(filepath.Join(dir, PodsDir)); err != nil { // of a run that was cut off then
		t.Fatal(err)
	}
	if err := RotateAll(dir); err != nil {
		t.Fatal(err)
	}
	now := load(PodsDir, "")
	if name := now.cert.Subject.CommonName; !strings.HasPrefix(name, "wherry-pods-ca-") || len(now.former) != 1 ||
		!now.former[0].Equal(pods.cert) {
		t.Errorf("%s, before it %d", name, len(now.former))
	}
	if _, err := os.Stat(filepath.Join(dir, FrontProxyDir)); err == nil {
		t.Error("an authority was made that nobody has asked for")
	}
	if err := RotateAll(dir); !errors.Is(err, ErrRotating) {
		t.Errorf("once more: %v", err)
	}
	if changed, err := FinishAll(dir); !changed || err != nil {
		t.Errorf("finish: %v, %v", changed, err)
	}
	if now = load(PodsDir, ""); len(now.former) != 0 {
		t.Error("the one before is still trusted")
	}
	if err := RotateAll(dir); err != nil {
		t.Fatal(err)
	}
	if name := load("", "").cert.Subject.CommonName; strings.Count(name, "-") != 2 {
		t.Errorf("the name grows: %s", name)
	}
}
