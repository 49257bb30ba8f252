// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
)

// at is a resolver of one address.
type at struct{ *url.URL }

func (a at) ResolveEndpoint(string, string, int32) (*url.URL, error) { return a.URL, nil }

// routeTo is a route of group g/v1 to a server that is there.
func routeTo(t *testing.T, answer http.HandlerFunc) *route {
	t.Helper()
	srv := httptest.NewTLSServer(answer)
	t.Cleanup(srv.Close)
	where, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &route{path: "/apis/g/v1", through: srv.Client().Transport, resolver: at{where}, regardless: true,
		codecs: serializer.NewCodecFactory(runtime.NewScheme()),
		service: &v1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.g"},
			Spec: v1.APIServiceSpec{Service: &v1.ServiceReference{Port: ptr.To[int32](443)}}}}
}

func tableOf(r *route) *table {
	return &table{byPath: map[string]*route{r.path: r}, ordered: []*route{r}, groups: map[string]group{}}
}

// An answer that breaks off, or that is too large or no document, is none: it harms neither the list nor the server.
// WL-08.
func TestBrokenDocuments(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"broken off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"paths":{}`))
		},
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"paths":{"apis/g/v1":{}}}` + strings.Repeat(" ", maxDocument)))
		},
		"no document": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("boats")) },
		"refused":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
	} {
		// As in a request that is served, where the library for proxies panics.
		ctx := context.WithValue(t.Context(), http.ServerContextKey, &http.Server{})
		if got := tableOf(routeTo(t, answer)).documents(ctx); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	whole := routeTo(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"paths":{"apis/g/v1":{"serverRelativeURL":"/x"},"apis/other/v1":{}}}`))
	})
	if got := tableOf(whole).documents(t.Context()); len(got) != 1 || got["apis/g/v1"].ServerRelativeURL != "/x" {
		t.Errorf("a whole one: %v", got)
	}
}

// The one document of OpenAPI v2 has the paths and definitions of other servers' groups, and nothing else of theirs, in
// every form; one that has none, or does not answer, leaves this server's own. WL-08.
func TestWholeDocument(t *testing.T) {
	const own = `{"swagger":"2.0","info":{"title":"own","version":"1"},"paths":{"/api/v1/pods":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/Thing"}}}}}},"definitions":{"Thing":{"type":"object"}}}`
	const theirs = `{"swagger":"2.0","info":{"title":"boats","version":"1"},"paths":{"/apis/g/v1/boats":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/Boat"}}}}},` +
		`"/apis/g/v1/things":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/Thing"}}}}},` +
		`"/apis/other/v1/cars":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/Car"}}}}},"/api/v1/pods":{}},` +
		`"definitions":{"Boat":{"type":"object"},"Car":{"type":"object"},"Thing":{"type":"string"}}}`
	next := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("If-None-Match") == `"own"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write([]byte(own))
	})
	ask := func(answer http.HandlerFunc, header ...string) *httptest.ResponseRecorder {
		a := &Aggregator{}
		a.routes.Store(tableOf(routeTo(t, answer)))
		req := httptest.NewRequestWithContext(request.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"}), "GET", openAPIv2, http.NoBody)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		a.Handler(next).ServeHTTP(w, req)
		return w
	}
	say := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == openAPIv2 && req.Header.Get("X-Remote-User") == "system:aggregator" {
				_, _ = w.Write([]byte(text))
			}
		}
	}
	merged := ask(say(theirs), "Accept", "application/json", "If-None-Match", `"own"`)
	for text, want := range map[string]bool{`"/api/v1/pods"`: true, `"/apis/g/v1/boats"`: true, `"Boat"`: true, `"Thing"`: true, `"Thing_v2"`: true,
		`"#/definitions/Thing_v2"`: true, `"title":"own"`: true, "cars": false, "Car": false, `"title":"boats"`: false} {
		if strings.Contains(merged.Body.String(), text) != want {
			t.Errorf("it has %s: %t, want %t: %s", text, !want, want, merged.Body)
		}
	}
	if again := ask(say(theirs), "Accept", "application/json", "If-None-Match", merged.Header().Get("Etag")); again.Code != http.StatusNotModified {
		t.Errorf("asked again: %d", again.Code)
	}
	const asProtobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	if w := ask(say(theirs), "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"); w.Code != 200 ||
		w.Header().Get("Content-Type") != asProtobuf || !strings.Contains(w.Body.String(), "/apis/g/v1/boats") {
		t.Errorf("protobuf: %d %v", w.Code, w.Header())
	}
	for name, answer := range map[string]string{"nothing": "", "no document": "boats", "no paths": `{"swagger":"2.0"}`,
		"none of its group": `{"swagger":"2.0","paths":{"/apis/other/v1/cars":{}}}`} {
		if w := ask(say(answer), "Accept", "application/json"); w.Code != 200 || w.Body.String() != own {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// In this server's own name others are asked for their document and nothing else, whatever a client adds to its path.
// WL-08.
func TestDocumentsOnly(t *testing.T) {
	var asked []string
	r := routeTo(t, func(_ http.ResponseWriter, req *http.Request) {
		asked = append(asked, req.Method+" "+req.URL.Path+" "+req.Header.Get("X-Remote-User"))
	})
	a := &Aggregator{}
	a.routes.Store(tableOf(r))
	passed := 0
	h := a.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }))
	for _, c := range []struct {
		method, path string
		want         string // what the other server is asked; "": nothing
	}{
		{"GET", "/openapi/v3/apis/g/v1", "GET /openapi/v3/apis/g/v1 system:aggregator"},
		{"GET", "/openapi/v3/apis/g/v1/../../../../apis/g/v1/namespaces/x/secrets", ""},
		{"GET", "/openapi/v3/apis/g/v1/secrets", ""},
		{"GET", "/openapi/v3/apis/g//v1", ""},
		{"POST", "/openapi/v3/apis/g/v1", ""},
		{"GET", "/openapi/v3apis/g/v1", ""},
		{"GET", "/openapi/v2/apis/g/v1/secrets", ""},
		{"POST", "/openapi/v2", ""},
		{"GET", "/apis/g/v1/boats", "GET /apis/g/v1/boats jane"},
	} {
		asked, passed = nil, 0
		req := httptest.NewRequest(c.method, "/", http.NoBody)
		req.URL.Path = c.path
		req = req.WithContext(request.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"}))
		h.ServeHTTP(httptest.NewRecorder(), req)
		if got := strings.Join(asked, ","); got != c.want || (passed == 1) != (c.want == "") {
			t.Errorf("%s %s: asked %q, passed on %d times; want %q", c.method, c.path, got, passed, c.want)
		}
	}
}
