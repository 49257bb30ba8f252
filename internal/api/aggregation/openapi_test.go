// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
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
		a := &Aggregator{o: Options{Log: slog.New(slog.DiscardHandler)}}
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
		"none of its group":          `{"swagger":"2.0","paths":{"/apis/other/v1/cars":{}}}`,
		"a parameter that is itself": `{"paths":{"/apis/g/v1/boats":{"parameters":[{"$ref":"#/parameters/x"}]}},"parameters":{"x":{"$ref":"#/parameters/x"}}}`,
		"a response that is itself":  `{"paths":{"/apis/g/v1/boats":{"get":{"responses":{"200":{"$ref":"#/responses/x"}}}}},"responses":{"x":{"$ref":"#/responses/x"}}}`,
		"deep":                       `{"paths":{"/apis/g/v1/boats":{}},"definitions":` + strings.Repeat(`{"a":`, 20000) + `1` + strings.Repeat(`}`, 20000) + `}`,
		"deep in what is needed": `{"paths":{"/apis/g/v1/boats":{"get":{"responses":{"200":{"description":"","schema":{"$ref":"#/definitions/A"}}}}}},"definitions":{"A":` +
			strings.Repeat(`{"items":`, 5000) + `{}` + strings.Repeat(`}`, 5000) + `}}`} {
		if w := ask(say(answer), "Accept", "application/json"); w.Code != 200 || w.Body.String() != own {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// A document of another server, whatever is in it, neither ends this server nor takes anything of its document. WL-08.
func TestHostileDocument(t *testing.T) {
	// One that has a schema with a name that is this server's, but for its kind.
	const own = `{"swagger":"2.0","info":{"title":"own","version":"1"},"paths":{"/api/v1/pods":{}},"definitions":{"Thing":{"type":"object"}}}`
	const boats = `{"paths":{"/apis/g/v1/boats":{"get":{"parameters":[{"$ref":"#/parameters/x"}],"responses":{"200":{"description":"","schema":{"$ref":"#/definitions/Thing"}}}}}},`
	for name, c := range map[string]struct {
		docs []string
		kept bool // also what is theirs
	}{
		"a kind for a schema without one":               {[]string{boats + `"definitions":{"Thing":{"type":"object","x-kubernetes-group-version-kind":[{"group":"g","kind":"Thing","version":"v1"}]}}}`}, true},
		"a kind that is none":                           {[]string{boats + `"definitions":{"Thing":{"type":"object","x-kubernetes-group-version-kind":7}}}`}, true},
		"a schema of a parameter that is the parameter": {[]string{boats + `"parameters":{"x":{"name":"x","in":"body","schema":{"$ref":"#/parameters/x"}}}}`}, true},
		"items of a parameter that are the parameter":   {[]string{boats + `"parameters":{"x":{"name":"x","in":"query","items":{"$ref":"#/parameters/x"}}}}`}, true},
		"parameters in a circle": {[]string{boats + `"parameters":{"x":{"name":"x","in":"body","schema":{"allOf":[{"$ref":"#/parameters/y"},{"$ref":"#/parameters/y"}]}},` +
			`"y":{"name":"y","in":"body","schema":{"allOf":[{"$ref":"#/parameters/x"},{"$ref":"#/parameters/x"}]}}}}`}, true},
		"a schema that is itself": {[]string{boats + `"definitions":{"Thing":{"$ref":"#/definitions/Thing"}}}`}, true},
		"a name that is no address": {[]string{strings.ReplaceAll(boats, "Thing", "%zz") + `"definitions":{"%zz":{"type":"object"}}}`,
			strings.NewReplacer("Thing", "%zz", "boats", "cars").Replace(boats) + `"definitions":{"%zz":{"type":"string"}}}`}, false},
	} {
		var others []theirs
		for _, d := range c.docs {
			others = append(others, theirs{text: []byte(d), below: []string{"/apis/g/v1/"}})
		}
		text := mergedText(t, []byte(own), others)
		if !strings.Contains(text, `"/api/v1/pods"`) || !strings.Contains(text, `"Thing":{"type":"object"`) ||
			strings.Contains(text, `"/apis/g/v1/boats"`) != c.kept {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// mergedText is what those get who ask, as JSON.
func mergedText(t *testing.T, own []byte, others []theirs) string {
	t.Helper()
	h := merge(own, others, func(error) {})
	if h == nil {
		return string(own)
	}
	w := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(t.Context(), "GET", openAPIv2, http.NoBody)
	req.Header.Set("Accept", "application/json")
	h.ServeHTTP(w, req)
	if w.Code != http.StatusOK {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// FuzzWholeDocument merges documents of two servers. This server's own paths stay as they are, and those of others are
// their own.
func FuzzWholeDocument(f *testing.F) {
	const own = `{"swagger":"2.0","info":{"title":"own","version":"1"},"paths":{"/api/v1/pods":{"get":{"description":"own"}},"/apis/g/v1/own":{"get":{"description":"own"}}},` +
		`"definitions":{"Thing":{"type":"object"}},"parameters":{"x":{"name":"x","in":"query"}}}`
	const paths = `{"paths":{"/apis/g/v1/own":{},"/apis/g/v1/boats":{"get":{"parameters":[{"$ref":"#/parameters/x"}],"responses":{"200":{"description":"","schema":{"$ref":"#/definitions/Thing"}}}}}},`
	f.Add([]byte(paths+`"definitions":{"Thing":{"type":"object","x-kubernetes-group-version-kind":[{"group":"g","kind":"Thing","version":"v1"}]}}}`), []byte(`{}`))
	f.Add([]byte(paths+`"parameters":{"x":{"$ref":"#/parameters/x"}}}`), []byte(paths+`"definitions":{"Thing":{"$ref":"#/definitions/Thing"}}}`))
	f.Add([]byte(paths+`"parameters":{"x":{"name":"x","in":"body","schema":{"$ref":"#/parameters/x"}}}}`), []byte(paths+`"definitions":{"%zz":{}}}`))
	f.Fuzz(func(t *testing.T, one, other []byte) {
		text := mergedText(t, []byte(own), []theirs{{one, []string{"/apis/g/v1/"}}, {other, []string{"/apis/g/v1/", "/apis/h/v1/"}}})
		var doc struct {
			Paths map[string]map[string]struct{ Description string }
		}
		var all struct{ Paths map[string]json.RawMessage }
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if err := json.Unmarshal([]byte(text), &doc); err == nil && (doc.Paths["/api/v1/pods"]["get"].Description != "own" ||
			doc.Paths["/apis/g/v1/own"]["get"].Description != "own") {
			t.Errorf("this server's own: %s", text)
		}
		for path := range all.Paths {
			if !strings.HasPrefix(path, "/apis/g/v1/") && !strings.HasPrefix(path, "/apis/h/v1/") && path != "/api/v1/pods" {
				t.Errorf("%q is nobody's", path)
			}
		}
	})
}

// The document of OpenAPI v2 is made once for all who wait for it and as long as nothing has changed, and a server is
// asked once, whatever number of groups it has. WL-08.
func TestWholeDocumentOnce(t *testing.T) {
	var d whole
	own, text := `{"paths":{"/api/v1/pods":{}}}`, `{"paths":{"/apis/g/v1/boats":{}}}`
	read, made := 0, 0
	ask := func(asked uint64) http.Handler {
		return d.since(asked, func() ([]byte, []theirs) {
			read++
			return []byte(own), []theirs{{[]byte(text), []string{"/apis/g/v1/"}}, {[]byte("none"), []string{"/apis/h/v1/"}}}
		}, func(error) { made++ })
	}
	before := d.begun.Load()
	for _, c := range []struct {
		when       string
		asked      uint64
		change     func()
		read, made int
	}{
		{"the first", before, func() {}, 1, 1},
		{"who asked before the first had it", before, func() {}, 1, 1},
		{"who asks later", before + 1, func() {}, 2, 1},
		{"when theirs has changed", before + 2, func() { text = strings.Replace(text, "boats", "cars", 1) }, 3, 2},
		{"when our own has changed", before + 3, func() { own = strings.Replace(own, "pods", "nodes", 1) }, 4, 3},
	} {
		c.change()
		if ask(c.asked) == nil || read != c.read || made != c.made {
			t.Errorf("%s: read %d times and made %d times; want %d and %d", c.when, read, made, c.read, c.made)
		}
	}
	var asked atomic.Int32
	r := routeTo(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(text))
	})
	other, elsewhere, shut := *r, *r, *r
	other.path, elsewhere.path, shut.path = "/apis/h/v1", "/apis/i/v1", "/apis/j/v1"
	elsewhere.service = r.service.DeepCopy()
	elsewhere.service.Spec.Service.Name = "other"
	shut.broken = errors.New("shut")
	got := (&table{ordered: []*route{&shut, r, &other, &elsewhere}}).wholeDocuments(t.Context())
	if len(got) != 2 || asked.Load() != 2 || strings.Join(got[0].below, " ") != "/apis/g/v1/ /apis/h/v1/" ||
		strings.Join(got[1].below, " ") != "/apis/i/v1/" {
		t.Errorf("asked %d times: %q", asked.Load(), got)
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
