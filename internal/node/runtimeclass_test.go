// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestRuntimeClasses proves PL-15: the handler of a class is asked for, remembered while the API server does not answer, and
// forgotten with the class.
func TestRuntimeClasses(t *testing.T) {
	answer, code := "", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/node.k8s.io/v1/runtimeclasses/boxed" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	c := newRuntimeClasses(client)
	const class = `{"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"boxed"},"handler":"runsc"}`
	for _, step := range []struct {
		what, answer string
		code         int
		want         string // handler
		refuse       string
	}{
		{"away, never seen", "{}", 403, "", `cannot look up RuntimeClass "boxed"`},
		{"there", class, 200, "runsc", ""},
		{"away", "{}", 403, "runsc", ""},
		{"another one of the name", strings.Replace(class, "runsc", "other", 1), 200, "other", ""},
		{"gone", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, 404, "", `RuntimeClass "boxed" not found`},
		{"gone, and away", "{}", 403, "", "cannot look up"},
	} {
		answer, code = step.answer, step.code
		got, err := c.handlerOf(t.Context(), "boxed")
		if got != step.want || (err == nil) != (step.refuse == "") || err != nil && !strings.Contains(err.Error(), step.refuse) {
			t.Errorf("%s: %q, %v", step.what, got, err)
		}
	}
}
