// SPDX-License-Identifier: Apache-2.0

package configz

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spf13/pflag"
)

// TestConfigz: the effective configuration is shown, secrets are not.
func TestConfigz(t *testing.T) {
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	f.String("data-dir", "/var/lib/x", "")
	f.Int("port", 1, "")
	f.String("bearer-token", "hush", "")
	f.String("empty-secret", "", "")
	f.String("token-auth-file", "/etc/tokens.csv", "")
	f.String("etcd-server", "https://root:hush@example.com/", "")
	f.Bool("help", false, "")
	if err := f.Parse([]string{"--port", "7"}); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	Handler(map[string]any{"x": Component{map[string]bool{"A": true}, Flags(f)}}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/configz", nil))
	want := `{
  "x": {
    "featureGates": {
      "A": true
    },
    "flags": {
      "bearer-token": "(not shown)",
      "data-dir": "/var/lib/x",
      "empty-secret": "",
      "etcd-server": "https://root:xxxxx@example.com/",
      "port": "7",
      "token-auth-file": "/etc/tokens.csv"
    }
  }
}
`
	if got := w.Body.String(); got != want || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
