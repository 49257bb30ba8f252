// SPDX-License-Identifier: Apache-2.0

package imagename

import (
	"strings"
	"testing"
)

// TestIsID proves RS-12: what a runtime looks up among the ids of its images is not taken for a name, and no name for an id.
func TestIsID(t *testing.T) {
	for image, want := range map[string]bool{
		"sha256:" + strings.Repeat("a", 64):                true,
		"sha256:5905453c494f":                              true,
		"sha256:5":                                         true,
		"sha512:" + strings.Repeat("0", 128):               true,
		"sha256:":                                          false,
		"sha256":                                           false,
		"sha256:v1":                                        false,
		"sha256:ABCDEF":                                    false,
		"docker.io/library/sha256:5905453c494f":            false,
		"library/sha256:5905453c494f":                      false,
		"sha256@sha256:" + strings.Repeat("a", 64):         false,
		"sha256:59@sha256:" + strings.Repeat("a", 64):      false,
		"busybox":                                          false,
		"docker.io/x@sha256:" + strings.Repeat("a", 64):    false,
		"5905453c494f":                                     false, // completed with :latest before a runtime sees it
		"registry.example:5000/sha256:" + "5905453c494f00": false,
	} {
		if got := IsID(image); got != want {
			t.Errorf("%s: %t", image, got)
		}
	}
}

// TestCalledByID proves RS-12: a name that a runtime took for an id is noticed by the names that the image has.
func TestCalledByID(t *testing.T) {
	id := "sha256:5905453c494f" + strings.Repeat("0", 52)
	for _, row := range []struct {
		given string
		names []string
		want  bool
	}{
		{"5905453c494f", nil, true},
		{"5905453c494f", []string{"evil.test/evil:1"}, true},
		{"5905453c494f:latest", []string{"evil.test/evil:1"}, true},
		{id, []string{"evil.test/evil:1"}, true},
		{"5905453c494f", []string{"docker.io/library/5905453c494f:latest"}, false},
		{"cafe", []string{"registry.example/cafe:latest"}, false}, // a short name that the runtime completes, and no beginning of the id
		{"evil.test/evil:1", []string{"evil.test/evil:1"}, false},
		{"evil.test/evil:2", nil, false},
	} {
		if got := CalledByID(row.given, id, row.names); got != row.want {
			t.Errorf("%s among %v: %t", row.given, row.names, got)
		}
	}
}
