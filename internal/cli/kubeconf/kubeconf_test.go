// SPDX-License-Identifier: Apache-2.0

package kubeconf

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wherryproject/wherry/internal/pki"
)

// base is a kubeconfig as a server writes it; CA, CERT and KEY stand for their data.
const base = `apiVersion: v1
kind: Config
preferences: {}
current-context: here
clusters:
- name: one
  cluster:
    server: https://127.0.0.1:6443
    certificate-authority-data: CA
- name: two
  cluster:
    server: https://example.com/below
contexts:
- name: here
  context: {cluster: one, user: admin, namespace: work}
- name: there
  context: {cluster: two, user: robot}
- name: nowhere
  context: {cluster: three, user: robot}
users:
- name: admin
  user:
    client-certificate-data: CERT
    client-key-data: KEY
- name: robot
  user: {token: secret}
`

func material(t testing.TB) (ca, cert, key []byte) {
	t.Helper()
	own, err := pki.LoadOrCreate(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err = own.Client("admin", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return own.CertPEM(), cert, key
}

func filled(text string, ca, cert, key []byte) string {
	b64 := base64.StdEncoding.EncodeToString
	return strings.NewReplacer("CA\n", b64(ca)+"\n", "CERT\n", b64(cert)+"\n", "KEY\n", b64(key)+"\n").Replace(text)
}

// What is read is what client-go reads.
func TestReadAsClientGo(t *testing.T) {
	ca, cert, key := material(t)
	dir := t.TempDir()
	for name, text := range map[string][]byte{"ca.pem": ca, "cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := strings.NewReplacer("certificate-authority-data: CA", "certificate-authority: ca.pem", "client-certificate-data: CERT", "client-certificate: ./cert.pem",
		"client-key-data: KEY", "client-key: "+filepath.Join(dir, "key.pem")).Replace(base)
	for name, c := range map[string]struct{ text, context string }{
		"data":     {base, ""},
		"by name":  {base, "here"},
		"a token":  {base, "there"},
		"files":    {files, ""},
		"as JSON":  {`{"apiVersion":"v1","kind":"Config","current-context":"a","clusters":[{"name":"a","cluster":{"server":"https://h:1"}}],"users":[{"name":"a","user":{}}],"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}]}`, ""},
		"extended": {strings.Replace(base, "preferences: {}", "extensions:\n- name: x\n  extension: {a: 1}", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if name == "files" {
				path = filepath.Join(dir, "kubeconfig")
			}
			if err := os.WriteFile(path, []byte(filled(c.text, ca, cert, key)), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Read(path, c.context)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, path, c.context)
		})
	}
}

// same compares a target with what client-go makes of the file.
func same(t *testing.T, got *Target, path, context string) {
	t.Helper()
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: path},
		&clientcmd.ConfigOverrides{CurrentContext: context})
	config, err := loader.ClientConfig()
	if err != nil {
		t.Fatalf("client-go cannot read it: %v", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	token := ""
	if config.BearerToken != "" {
		token = "Bearer " + config.BearerToken
	}
	if got.Namespace != namespace || got.Base.String() != base.String() || got.Header.Get("Authorization") != token {
		t.Errorf("%s, %s, %q; client-go has %s, %s, %q", got.Base, got.Namespace, got.Header.Get("Authorization"), base, namespace, token)
	}
	want, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	if want == nil {
		if got.TLS.RootCAs != nil || len(got.TLS.Certificates) > 0 {
			t.Error("certificates, and client-go has none")
		}
		return
	}
	if got.TLS.MinVersion != want.MinVersion || got.TLS.InsecureSkipVerify || want.InsecureSkipVerify || got.TLS.ServerName != want.ServerName {
		t.Error("another TLS configuration than client-go's")
	}
	if (got.TLS.RootCAs == nil) != (want.RootCAs == nil) || want.RootCAs != nil && !got.TLS.RootCAs.Equal(want.RootCAs) {
		t.Error("another authority than client-go's")
	}
	if want.GetClientCertificate == nil {
		if len(got.TLS.Certificates) > 0 {
			t.Error("a certificate, and client-go has none")
		}
		return
	}
	pair, err := want.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(pair.Certificate) == 0 && len(got.TLS.Certificates) == 0 {
		return
	}
	if len(got.TLS.Certificates) != 1 || !bytes.Equal(got.TLS.Certificates[0].Certificate[0], pair.Certificate[0]) {
		t.Error("another certificate than client-go's")
	}
}

// What is not plain is left to client-go.
func TestUnusual(t *testing.T) {
	ca, cert, key := material(t)
	put := func(old, new string) string {
		if !strings.Contains(base, old) {
			t.Fatalf("%q is not there", old)
		}
		return strings.Replace(base, old, new, 1)
	}
	for name, c := range map[string]struct{ text, context string }{
		"a program for credentials": {put("user: {token: secret}", "user: {exec: {command: login}}"), "there"},
		"a token in a file":         {put("user: {token: secret}", "user: {tokenFile: /token}"), "there"},
		"a password":                {put("user: {token: secret}", "user: {username: a, password: b}"), "there"},
		"somebody else":             {put("user: {token: secret}", "user: {token: secret, as: root}"), "there"},
		"a proxy":                   {put("server: https://example.com/below", "server: https://example.com/below\n    proxy-url: http://p"), "there"},
		"another name":              {put("server: https://example.com/below", "server: https://example.com/below\n    tls-server-name: x"), "there"},
		"unchecked":                 {put("server: https://example.com/below", "server: https://example.com/below\n    insecure-skip-tls-verify: true"), "there"},
		"no TLS":                    {put("https://example.com/below", "http://example.com/below"), "there"},
		"no scheme":                 {put("https://example.com/below", "example.com:6443"), "there"},
		"no such context":           {base, "elsewhere"},
		"no such cluster":           {base, "nowhere"},
		"no current context":        {put("current-context: here\n", ""), ""},
		"the name twice":            {put("- name: there\n  context", "- name: here\n  context"), ""},
		"a key twice":               {put("kind: Config\n", "kind: Config\nkind: Config\n"), ""},
		"data and file":             {put("certificate-authority-data: CA\n", "certificate-authority-data: CA\n    certificate-authority: ca.pem\n"), ""},
		"a number for a token":      {put("token: secret", "token: 123"), "there"},
		"bad base64":                {put("CERT\n", "%%%\n"), ""},
		"no key":                    {put("    client-key-data: KEY\n", ""), ""},
		"no authority in it":        {put("CA\n", "aGVsbG8=\n"), ""},
		"two documents":             {base + "---\nkind: Config\n", ""},
		"empty":                     {"", ""},
		"no YAML":                   {"{", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(path, []byte(filled(c.text, ca, cert, key)), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := Read(path, c.context); !errors.Is(err, ErrUnusual) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none"), ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// FuzzParse: what is taken for plain, client-go takes too, and for the same server.
func FuzzParse(f *testing.F) {
	ca, cert, key := material(f)
	f.Add([]byte(filled(base, ca, cert, key)), "there")
	f.Add([]byte(`{"clusters":[{"name":"","cluster":{"server":"https://h"}}]}`), "")
	f.Add([]byte("a: &a [*a]"), "x")
	f.Add([]byte(strings.Replace(filled(base, ca, cert, key), "apiVersion: v1", "apiVersion: v", 1)), "there")
	f.Fuzz(func(t *testing.T, text []byte, context string) {
		got, err := parse(text, t.TempDir(), context)
		if err != nil {
			return
		}
		config, err := clientcmd.Load(text)
		if err != nil {
			t.Fatalf("client-go cannot read it: %v", err)
		}
		if context == "" {
			context = config.CurrentContext
		}
		chosen := config.Contexts[context]
		if chosen == nil {
			t.Fatalf("client-go has no context %q", context)
		}
		cluster := config.Clusters[chosen.Cluster]
		if cluster == nil {
			cluster = &clientcmdapi.Cluster{}
		}
		if strings.TrimSuffix(cluster.Server, "/") != strings.TrimSuffix(got.Base.String(), "/") {
			t.Errorf("server %s, client-go has %s", got.Base, cluster.Server)
		}
	})
}
