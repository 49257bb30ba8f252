// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/wherryproject/wherry/internal/api/schemes"
)

// RS-01: such an object is refused before it is decoded; texts, and what goes through to programs, are passed on whole.
func TestBoundedNumbers(t *testing.T) {
	const body = `{"cpu":"1e-10000000"}`
	known, err := schemes.New()
	if err != nil {
		t.Fatal(err)
	}
	h := withBoundedNumbers(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(w, req.Body)
	}), known.Codecs, 1<<20)
	for name, x := range map[string]struct {
		method string
		info   request.RequestInfo
		body   string
		want   int
	}{
		"a pod":             {http.MethodPost, request.RequestInfo{Resource: "pods"}, body, http.StatusBadRequest},
		"a patch":           {http.MethodPatch, request.RequestInfo{Resource: "pods", Subresource: "resize"}, body, http.StatusBadRequest},
		"a custom resource": {http.MethodPut, request.RequestInfo{APIGroup: "example.com", Resource: "secrets"}, body, http.StatusBadRequest},
		"an ordinary pod":   {http.MethodPost, request.RequestInfo{Resource: "pods"}, `{"cpu":"1e-3"}`, http.StatusOK},
		"a ConfigMap":       {http.MethodPost, request.RequestInfo{Resource: "configmaps"}, body, http.StatusOK},
		"to a program":      {http.MethodPost, request.RequestInfo{Resource: "services", Subresource: "proxy"}, body, http.StatusOK},
		"a deletion":        {http.MethodDelete, request.RequestInfo{Resource: "pods"}, body, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			x.info.IsResourceRequest = true
			req := httptest.NewRequest(x.method, "/", strings.NewReader(x.body))
			req.Header.Set("Content-Type", "application/json")
			req = req.WithContext(request.WithRequestInfo(req.Context(), &x.info))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			if w.Code != x.want || w.Code == http.StatusOK && w.Body.String() != x.body {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		})
	}
}
