// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
)

// hardServer is a server with limits that a test can reach.
func hardServer(t *testing.T, prefix string, change func(*api.Serving)) (*api.Server, *rest.Config) {
	t.Helper()
	serving := api.DefaultServing()
	change(&serving)
	s, _ := serve(t, api.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1",
		EtcdServers: []string{shared.etcd.Endpoint()}, EtcdPrefix: prefix, Serving: &serving})
	return s, configOf(t, s)
}

// ask makes a request and returns the answer with its body.
func ask(t *testing.T, config *rest.Config, method, path string, body io.Reader,
	headers ...string) (*http.Response, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, config.Host+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// TestTLSVersions proves that a server speaks TLS 1.3 alone unless told otherwise.
func TestTLSVersions(t *testing.T) {
	const suite = tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	lenient, _ := hardServer(t, "/tls12", func(s *api.Serving) {
		s.TLSMinVersion, s.TLSCipherSuites = "VersionTLS12", []string{tls.CipherSuiteName(suite)}
	})
	for name, tc := range map[string]struct {
		server *api.Server
		client *tls.Config
		want   uint16
	}{
		"1.3":               {shared.srv, &tls.Config{}, tls.VersionTLS13},
		"1.2 is refused":    {shared.srv, &tls.Config{MaxVersion: tls.VersionTLS12}, 0},
		"1.2 where allowed": {lenient, &tls.Config{MaxVersion: tls.VersionTLS12}, tls.VersionTLS12},
		"another suite": {lenient, &tls.Config{MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}}, 0},
		"1.1 is always refused": {lenient, &tls.Config{MinVersion: tls.VersionTLS11, MaxVersion: tls.VersionTLS11}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.client.RootCAs, tc.client.ServerName = tc.server.CA().Pool(), "localhost"
			conn, err := tls.Dial("tcp", strings.TrimPrefix(tc.server.URL(), "https://"), tc.client)
			if tc.want == 0 {
				if err == nil {
					t.Errorf("spoke %s", tls.VersionName(conn.ConnectionState().Version))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if got := conn.ConnectionState(); got.Version != tc.want ||
				tc.want == tls.VersionTLS12 && got.CipherSuite != suite {
				t.Errorf("%s with %s", tls.VersionName(got.Version), tls.CipherSuiteName(got.CipherSuite))
			}
		})
	}
}

// TestBodies proves that bodies are bounded, whatever form they have.
// ATTACK B1, B2.
func TestBodies(t *testing.T) {
	config := adminConfig(t)
	c := client(t)
	ns := namespace(t, c)
	path := "/api/v1/namespaces/" + ns + "/configmaps"
	big := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"big"},"data":{"a":"` +
		strings.Repeat("x", 3<<20) + `"}}`
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	for range 64 {
		if _, err := zip.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	zip.Close()
	laughs := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: l}\na: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'l'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10),
			","))
	}
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	manyOps := "[" +
		strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/metadata/name","value":"kube-root-ca.crt"},`, 10_001),
			",") + "]"
	for name, tc := range map[string]struct {
		method, path, body, kind string
		code                     int
	}{
		"more than 3 MiB":            {"POST", path, big, "application/json", 413},
		"a patch of more than 3 MiB": {"PATCH", path + "/big", big, "application/merge-patch+json", 413},
		"an apply of more than that": {"PATCH", path + "/big?fieldManager=t", big, "application/apply-patch+yaml", 413},
		"a million laughs":           {"POST", path, laughs, "application/yaml", 400},
		"very deep":                  {"POST", path, deep, "application/json", 400},
		"a patch, very deep":         {"PATCH", "/api/v1/namespaces/" + ns, deep, "application/merge-patch+json", 400},
		"a patch of many steps": {"PATCH", "/api/v1/namespaces/" + ns, manyOps, "application/json-patch+json",
			413},
	} {
		t.Run(name, func(t *testing.T) {
			resp, said := ask(t, config, tc.method, tc.path, strings.NewReader(tc.body), "Content-Type", tc.kind)
			if resp.StatusCode != tc.code {
				t.Errorf("%d %.300s, want %d", resp.StatusCode, said, tc.code)
			}
		})
	}
	t.Run("a compressed body is not decompressed", func(t *testing.T) {
		resp, said := ask(t, config, "POST", path, bytes.NewReader(bomb.Bytes()), "Content-Type", "application/json",
			"Content-Encoding", "gzip")
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%d %.300s", resp.StatusCode, said)
		}
	})
}

// TestSlowBody proves that a client which sends its body slowly gets its answer when its time is over.
func TestSlowBody(t *testing.T) {
	s, config := hardServer(t, "/slow", func(s *api.Serving) { s.RequestTimeout = time.Second })
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"), tlsConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn,
		"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 504 ") &&
		!strings.HasPrefix(string(text), "HTTP/1.1 400 ") {
		t.Errorf("%q %v", text, err)
	}
}

// TestWhatIsShown proves that what tells about the server's inside is for those who may see it, and off by default.
func TestWhatIsShown(t *testing.T) {
	_, profiled := hardServer(t, "/profiled", func(s *api.Serving) {
		s.Profiling, s.HSTS = true, []string{"max-age=60", "includeSubDomains"}
	})
	nobody := asUser(t, "nobody-in-particular")
	for name, tc := range map[string]struct {
		config *rest.Config
		path   string
		code   int
	}{
		"no profiles":                 {adminConfig(t), "/debug/pprof/", 404},
		"no profile":                  {adminConfig(t), "/debug/pprof/cmdline", 404},
		"no flags":                    {adminConfig(t), "/debug/flags/v", 404},
		"profiles when asked for":     {profiled, "/debug/pprof/goroutine", 200},
		"but not for everybody":       {nobody, "/debug/pprof/cmdline", 403},
		"metrics":                     {adminConfig(t), "/metrics", 200},
		"metrics not for everybody":   {nobody, "/metrics", 403},
		"queues not for everybody":    {nobody, "/debug/api_priority_and_fairness/dump_queues", 403},
		"resources not for everybody": {nobody, "/api/v1/pods", 403},
	} {
		t.Run(name, func(t *testing.T) {
			if resp, said := ask(t, tc.config, "GET", tc.path, nil); resp.StatusCode != tc.code {
				t.Errorf("%d %.200s, want %d", resp.StatusCode, said, tc.code)
			}
		})
	}
	if resp,
		_ := ask(t, profiled, "GET", "/version",
		nil); resp.Header.Get("Strict-Transport-Security") != "max-age=60; includeSubDomains" {
		t.Errorf("%v", resp.Header)
	}
}
