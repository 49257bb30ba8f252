// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestEarlyReader(t *testing.T) {
	for _, c := range []struct {
		agent, query string
		want         time.Duration
	}{
		{"wherry (linux/amd64)", "tty=true", 0},
		{"wherry/v1.37.2 (linux/amd64) kubernetes/abc", "", 0},
		{"kubectl/v1.34.0 (linux/amd64) kubernetes/abc", "tty=true", 0},
		{"kubectl/v1.101.0 (linux/amd64) kubernetes/abc", "tty=true", 0},
		{"kubectl/v1.33.9 (linux/amd64) kubernetes/abc", "tty=true", holdOnTerminal},
		{"kubectl/v1.29.0 (linux/amd64) kubernetes/abc", "tty=false", holdOtherwise},
		{"kubectl/v1.x", "tty=1", holdOnTerminal},
		{"k9s/v0.40 (linux/amd64) kubernetes/$Format", "tty=maybe", holdOtherwise},
		{"", "tty=true", holdOnTerminal},
	} {
		req := httptest.NewRequest(http.MethodGet, "/?"+c.query, nil)
		req.Header.Set("User-Agent", c.agent)
		if got := EarlyReader(req); got != c.want {
			t.Errorf("%q, %q: %v, want %v", c.agent, c.query, got, c.want)
		}
	}
}
