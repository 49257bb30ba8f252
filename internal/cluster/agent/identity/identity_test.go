// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/agent/agenttest"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// apiserver answers as kube-apiserver does: it makes one request, and says of it what answer does.
func apiserver(t *testing.T, answer func(request *x509.CertificateRequest) string) (Cluster, *csr) {
	t.Helper()
	made := &csr{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, `{"message":"who are you"}`, http.StatusUnauthorized)
			return
		}
		switch {
		case r.Method == http.MethodPost:
			if err := json.NewDecoder(r.Body).Decode(made); err != nil {
				t.Error(err)
			}
			made.Metadata.Name = "wherry-debug-agent-x"
			_ = json.NewEncoder(w).Encode(made)
		case r.URL.Query().Get("fieldSelector") == "metadata.name=wherry-debug-agent-x":
			block, _ := pem.Decode(made.Spec.Request)
			request, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write([]byte(`{"type":"ADDED","object":{"metadata":{"name":"wherry-debug-agent-x"}}}` +
				answer(request)))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	c := Cluster{Address: strings.TrimPrefix(s.URL, "https://"), Token: filepath.Join(dir, "token"),
		CA: filepath.Join(dir, "ca")}
	for path, text := range map[string][]byte{c.Token: []byte("secret\n"),
		c.CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c, made
}

// signed is an event with a certificate.
func signed(certs ...[]byte) string {
	var r csr
	for _, der := range certs {
		r.Status.Certificate = append(r.Status.Certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: der})...)
	}
	text, _ := json.Marshal(map[string]any{"type": "MODIFIED", "object": r}) // it is in memory
	return string(text)
}

// DA-07: an agent asks in the words that the API signs, and learns whom to trust from the answer.
func TestAsks(t *testing.T) {
	pki := agenttest.NewPKI(t)
	serving := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	c, made := apiserver(t, func(r *x509.CertificateRequest) string {
		if r.Subject.CommonName != wire.AgentPrefix+"n1" || strings.Join(r.Subject.Organization, "") != wire.AgentOrg ||
			strings.Join(r.DNSNames, "") != wire.ServerName("n1") {
			t.Errorf("asked for %v, %v", r.Subject, r.DNSNames)
		}
		return signed(pki.SignKey(agenttest.CertRequest{Name: r.Subject.CommonName, DNS: wire.ServerName("n1"),
			Usage: serving}, r.PublicKey), pki.Cert.Raw)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := make(chan string, 10)
	k := New(c, "n1", func(format string, _ ...any) { said <- format })
	select {
	case <-k.First():
		t.Error("there is an identity from the beginning")
	default:
	}
	done := make(chan struct{})
	go func() {
		k.Run(ctx)
		close(done)
	}()
	if text := <-said; !strings.HasPrefix(text, "certificate of") || k.Now() == nil {
		t.Errorf("said %q, has %v", text, k.Now())
	}
	if made.Spec.SignerName != wire.SignerName || strings.Join(made.Spec.Usages,
		",") != "digital signature,server auth" {
		t.Errorf("asked with %+v", made.Spec)
	}
	<-k.First()
	cancel()
	<-done
}

// DA-07: an answer that is not for this key, this node and serving alone is not taken, and it is said why there is
// none.
func TestRefusesAnswers(t *testing.T) {
	pki, other := agenttest.NewPKI(t), agenttest.NewPKI(t)
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	wish := func(usage ...x509.ExtKeyUsage) agenttest.CertRequest {
		return agenttest.CertRequest{Name: wire.AgentPrefix + "n1", DNS: wire.ServerName("n1"), Usage: usage}
	}
	server, client := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	for want, answer := range map[string]func(r *x509.CertificateRequest) string{
		"another key": func(*x509.CertificateRequest) string {
			return signed(pki.SignKey(wish(server), &foreign.PublicKey), pki.Cert.Raw)
		},
		"serving alone": func(r *x509.CertificateRequest) string {
			return signed(pki.SignKey(wish(server, client), r.PublicKey), pki.Cert.Raw)
		},
		"not n1": func(r *x509.CertificateRequest) string {
			w := wish(server)
			w.DNS = wire.ServerName("n2")
			return signed(pki.SignKey(w, r.PublicKey), pki.Cert.Raw)
		},
		"unknown authority": func(r *x509.CertificateRequest) string {
			return signed(pki.SignKey(wish(server), r.PublicKey), other.Cert.Raw)
		},
		"followed by its authority": func(r *x509.CertificateRequest) string {
			return signed(pki.SignKey(wish(server), r.PublicKey))
		},
		"denied: not you": func(*x509.CertificateRequest) string {
			return `{"type":"MODIFIED","object":{"status":{"conditions":[{"type":"Denied","message":"not you"}]}}}`
		},
		"deleted": func(*x509.CertificateRequest) string { return `{"type":"DELETED","object":{}}` },
		"too old": func(*x509.CertificateRequest) string {
			return `{"type":"ERROR","object":{"message":"too old"}}`
		},
		"be watched": func(*x509.CertificateRequest) string { return "" },
	} {
		c, _ := apiserver(t, answer)
		id, err := New(c, "n1", nil).ask(t.Context())
		if want == "not n1" {
			want = "n2"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, id, err)
		}
	}
	c, _ := apiserver(t, nil)
	if err := os.WriteFile(c.Token, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(c, "n1", nil).ask(t.Context()); err == nil || !strings.Contains(err.Error(), "who are you") {
		t.Errorf("a token that is refused: %v", err)
	}
	c.CA = c.Token
	if _, err := New(c, "n1", nil).ask(t.Context()); err == nil || !strings.Contains(err.Error(), "no certificate in") {
		t.Errorf("no authority: %v", err)
	}
}

// A certificate is renewed well before it is over, and not by all agents at once.
func TestRenewIn(t *testing.T) {
	from := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	until := from.Add(30 * time.Hour)
	for _, test := range []struct {
		after  time.Duration
		chance float64
		want   time.Duration
	}{{0, 0, 20 * time.Hour}, {0, 1, 17 * time.Hour}, {time.Hour, 0, 19 * time.Hour}, {29 * time.Hour, 0, firstPause},
		{99 * time.Hour, 1, firstPause}} {
		if got := renewIn(from.Add(test.after), from, until, test.chance); (got - test.want).Abs() > time.Second {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

// Without a cluster it is said how to do without.
func TestInCluster(t *testing.T) {
	if _, err := InCluster(func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "--cert") {
		t.Error(err)
	}
	c, err := InCluster(func(name string) string {
		return map[string]string{"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}[name]
	})
	if err != nil || c.Address != "[fd00::1]:443" {
		t.Errorf("%+v, %v", c, err)
	}
}

// FuzzAnswers: whatever the server says is a certificate with its authority, or an error.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(signed([]byte("x"))), []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"))
	f.Add([]byte(`{"type":"ERROR"}`), []byte(""))
	f.Fuzz(func(t *testing.T, events, chain []byte) {
		if got, done, err := watched(bytes.NewReader(events)); done != (len(got) > 0) || done && err != nil {
			t.Errorf("%q, %v, %v", got, done, err)
		}
		if certs, err := parseChain(chain); err == nil && (len(certs) != 2 || !certs[1].IsCA) {
			t.Errorf("%d certificates", len(certs))
		}
	})
}
