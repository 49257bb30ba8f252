// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/netip"
	"testing"
)

// TestServerAddress: where service kubernetes leads to, by the URL that the node knows the API server by.
func TestServerAddress(t *testing.T) {
	for _, tc := range []struct{ url, inUse, want string }{
		{"https://127.0.0.1:6443", "", "127.0.0.1:6443"},
		{"https://10.1.2.3", "", "10.1.2.3:443"},
		{"https://[fd00::5]:6443", "", "[fd00::5]:6443"},
		{"https://localhost:6443", "", "127.0.0.1:6443"},
		{"https://localhost:6443", "127.0.0.1:6443", "127.0.0.1:6443"},
		{"https://localhost:7443", "127.0.0.1:6443", "127.0.0.1:7443"},
		{"localhost", "", ""},
		{"https://localhost:nowhere", "", ""},
	} {
		var inUse netip.AddrPort
		if tc.inUse != "" {
			inUse = netip.MustParseAddrPort(tc.inUse)
		}
		got, err := serverAddress(t.Context(), tc.url, true, inUse)
		if (err != nil) != (tc.want == "") || err == nil && got.String() != tc.want {
			t.Errorf("%s, in use %s: %s, %v; want %q", tc.url, tc.inUse, got, err, tc.want)
		}
	}
}
