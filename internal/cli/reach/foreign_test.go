// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// DA-10: that debugging is not installed in a cluster is said where it is known, and nowhere else.
func TestElsewhere(t *testing.T) {
	for status, want := range map[int]string{http.StatusOK: "", http.StatusNotFound: "wherry cluster install makes it possible",
		http.StatusServiceUnavailable: "does not answer", http.StatusForbidden: "cannot be told: it answers 403 Forbidden",
		http.StatusBadGateway: "cannot be told: it answers 502 Bad Gateway"} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == wire.Base {
				w.WriteHeader(status)
			}
		}))
		f, err := (&Client{Config: &rest.Config{Host: srv.URL}}).Elsewhere(t.Context())
		srv.Close()
		if err != nil || f == nil || f.Serves != (status == http.StatusOK) || !strings.Contains(f.Error(), want) ||
			strings.Contains(f.Error(), "install makes") != (status == http.StatusNotFound) {
			t.Errorf("%d: %+v, %v", status, f, err)
		}
	}
}
