// SPDX-License-Identifier: Apache-2.0

package httpapi

import "testing"

// TestRuntimeURL: where a runtime's stream is (PID-10); what has no host is refused, as it would be a request to this very server.
func TestRuntimeURL(t *testing.T) {
	for raw, want := range map[string]string{
		"http://127.0.0.1:5/exec/x":  "http://127.0.0.1:5/exec/x",
		"https://127.0.0.1:5/exec/x": "https://127.0.0.1:5/exec/x",
		"//127.0.0.1:5/cri/exec/x":   "http://127.0.0.1:5/cri/exec/x", // cri-dockerd
		"/exec/x":                    "",
		"unix:///run/x":              "",
		"ftp://127.0.0.1/x":          "",
		"":                           "",
		"http://%zz":                 "",
	} {
		got, err := runtimeURL(raw)
		if want == "" {
			if err == nil {
				t.Errorf("%q is taken for %s", raw, got)
			}
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("%q: %v, %v; want %s", raw, got, err, want)
		}
	}
}
