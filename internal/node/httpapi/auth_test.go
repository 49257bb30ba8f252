// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/pki"
)

// TestWhoGetsIn: nobody without a right gets anything of a node's API, by whatever path. ATTACK A13.
func TestWhoGetsIn(t *testing.T) {
	w := newWorld(t)
	nobody := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: w.ca.CertPEM()}}
	otherCA, err := pki.LoadOrCreate(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err := otherCA.Client("apiserver", []string{"system:masters"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	stranger := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: w.ca.CertPEM(), CertData: certPEM, KeyData: keyPEM}}
	for _, tc := range []struct {
		who    string
		config *rest.Config
		status int
		words  string
	}{
		{"without a certificate", nobody, 401, "client certificate is required"},
		{"with a certificate of another CA", stranger, 401, "invalid credentials"},
		{"a user of no group", w.client("jane"), 403, "Forbidden (user=jane, verb=get, resource=nodes, subresource=proxy)"},
		{"the API server", w.masters, 200, "PodList"},
	} {
		if status, body := w.get(tc.config, "/pods"); status != tc.status || !strings.Contains(body, tc.words) {
			t.Errorf("%s: %d %q, want %d with %q", tc.who, status, body, tc.status, tc.words)
		}
	}
	for _, path := range []string{"/exec/default/web/main?command=x&output=1", "/imageExec/default/web?image=x&output=1", "/healthz", "/metrics", "/configz", "/logs/", "/nothing"} {
		if status, _ := w.get(nobody, path); status != 401 {
			t.Errorf("%s without a certificate: %d", path, status)
		}
	}
	for _, path := range []string{"/exec/default/web/main?command=x&output=1", "/imageExec/default/web?image=x&output=1", "//exec/default/web/main?command=x", "/./exec/default/web/main",
		"/metrics/../exec/default/web/main", "/metrics/..%2Fexec/default/web/main", "/%65xec/default/web/main", "/healthz/../pods", "/logs/../pods", "/logs/..%2f..%2fetc/passwd",
		"/containerLogs/default/web/main", "/stats/summary", "/pods/", "/", "/nothing", "/EXEC/default/web/main"} {
		for who, config := range map[string]*rest.Config{"a user": w.client("jane"), "nobody": nobody} {
			if status, body := w.get(config, path); status != 401 && status != 403 {
				t.Errorf("%s of %s: %d %s", path, who, status, body)
			}
		}
	}
}

func TestAuthorizeIsAsked(t *testing.T) {
	var asked []string
	w := newWorld(t, func(c *Config) {
		c.Authorize = func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			asked = append(asked, fmt.Sprint(a.GetUser().GetName(), " ", a.GetVerb(), " ", a.GetResource(), "/", a.GetSubresource(), " ", a.GetName()))
			if a.GetSubresource() == "stats" {
				return authorizer.DecisionNoOpinion, "", fmt.Errorf("no rules loaded")
			}
			if a.GetSubresource() == "pods" {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionDeny, "", nil
		}
	})
	jane := w.client("jane")
	if status, _ := w.get(jane, "/pods/"); status != 200 {
		t.Errorf("/pods/: %d", status)
	}
	if status, _ := w.get(jane, "/healthz"); status != 403 {
		t.Errorf("/healthz: %d", status)
	}
	if status, body := w.get(jane, "/stats/summary"); status != 403 || !strings.Contains(body, "no rules loaded") {
		t.Errorf("/stats/summary: %d %s", status, body)
	}
	want := "[jane get nodes/pods node-1 jane get nodes/healthz node-1 jane get nodes/proxy node-1 jane get nodes/stats node-1]"
	if got := fmt.Sprint(asked); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}

// What starts something needs "create", also by GET.
func TestAttributes(t *testing.T) {
	for request, want := range map[string]string{
		"GET /exec/default/web/main":          "create proxy",
		"GET /imageExec/default/web":          "create proxy",
		"POST /attach/default/web/main":       "create proxy",
		"GET /portForward/default/web":        "create proxy",
		"GET /containerLogs/default/web/main": "get proxy",
		"GET /metrics":                        "get metrics",
		"GET /metrics/cadvisor":               "get metrics",
		"GET /stats/summary":                  "get stats",
		"GET /logs/syslog":                    "get log",
		"GET /healthz/ping":                   "get healthz,get proxy",
		"GET /configz":                        "get configz,get proxy",
		"GET /runningpods":                    "get pods,get proxy",
		"DELETE /x":                           "delete proxy",
		"PUT /x":                              "update proxy",
		"PATCH /":                             "patch proxy",
		"HEAD //exec/":                        "get proxy",
	} {
		method, path, _ := strings.Cut(request, " ")
		var got []string
		for _, a := range attributesOf("n", method, path) {
			got = append(got, a.Verb+" "+a.Subresource)
			if a.Resource != "nodes" || a.Name != "n" || !a.ResourceRequest {
				t.Errorf("%s: %+v", request, a)
			}
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%s needs %q, want %q", request, got, want)
		}
	}
}

func FuzzAttributes(f *testing.F) {
	f.Add(http.MethodGet, "/exec/a/b/c")
	f.Fuzz(func(t *testing.T, method, path string) {
		for _, a := range attributesOf("n", method, path) {
			if a.Verb == "" || a.Subresource == "" || a.Resource != "nodes" {
				t.Errorf("%s %q: %+v", method, path, a)
			}
		}
	})
}

func TestNewRefusesTheUnsafe(t *testing.T) {
	w := newWorld(t)
	good := w.server.config
	for what, change := range map[string]func(*Config){
		"no host":            func(c *Config) { c.Host = nil },
		"no certificate":     func(c *Config) { c.Certificate.Certificate = nil },
		"no client CA":       func(c *Config) { c.ClientCAs = nil },
		"no such logs":       func(c *Config) { c.LogDir = "/no/such/folder" },
		"nothing reads logs": func(c *Config) { c.Logs = nil },
	} {
		c := good
		change(&c)
		if s, err := New(c); err == nil {
			t.Errorf("%s: made %v", what, s)
		}
	}
}
