// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// DA-07: whoever runs an image beside a pod does not reach by its name what only the node is to reach.
func TestRegistriesBeyondTheNode(t *testing.T) {
	for address, refused := range map[string]bool{
		"127.0.0.1:5000": true, "[::1]:80": true, "[::ffff:127.0.0.1]:80": true, "0.0.0.0:80": true, "169.254.169.254:80": true,
		"[fe80::1%eth0]:80": true, "[::ffff:169.254.169.254]:443": true, "[::]:1": true, "224.0.0.1:1": true,
		"10.0.0.1:5000": false, "192.0.2.7:443": false, "[2001:db8::1]:443": false,
	} {
		if err := notOfNode(address); (err != nil) != refused {
			t.Errorf("%s: %v", address, err)
		}
	}
	asked := false
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := beyondNode().RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "registries beyond it") || asked {
		t.Errorf("%v, asked: %v", err, asked)
	}
}
