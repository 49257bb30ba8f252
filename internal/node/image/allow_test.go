// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"strings"
	"testing"
)

// TestAllowList proves DC-13: which images a list of patterns lets pass.
func TestAllowList(t *testing.T) {
	for _, c := range []struct {
		patterns, image string
		allowed         bool
	}{
		{"", "whatever", true},
		{"registry.example.com/tools/*", "registry.example.com/tools/debug", true},
		{"registry.example.com/tools/*", "registry.example.com/tools/debug:1.2", true},
		{"registry.example.com/tools/*", "registry.example.com/tools/debug@sha256:" + strings.Repeat("a", 64), true},
		{"registry.example.com/tools/*", "registry.example.com/tools/more/debug", false},
		{"registry.example.com/tools/**", "registry.example.com/tools/more/debug:1", true},
		{"registry.example.com/tools/**", "registry.example.com/tools", false},
		{"registry.example.com/tools/**", "registry.example.com/toolsevil/x", false},
		{"registry.example.com/tools/*", "registry.example.com.evil.net/tools/debug", false},
		{"registry.example.com/tools/*", "evil.net/registry.example.com/tools/debug", false},
		{"*.example.com/**", "a.example.com/x/y", true},
		{"*.example.com/**", "evil.net/a.example.com/x", false},
		{"wherry.dev/toolbox*", "wherry.dev/toolbox", true},
		{"wherry.dev/toolbox*", "wherry.dev/toolbox:latest", true},
		{"wherry.dev/toolbox*", "wherry.dev/toolbox-evil/x", false},
		{"wherry.dev/toolbox", "wherry.dev/toolbox", true},
		{"wherry.dev/toolbox", "wherry.dev/toolbox:other", false},
		{"busybox", "busybox", true},
		{"busybox:latest", "busybox", true},
		{"docker.io/library/busybox:*", "busybox", true},
		{"docker.io/library/*", "busybox:1.36", true},
		{"docker.io/library/*", "other/busybox", false},
		{"busybox,alpine:3.*", "alpine:3.20", true},
		{"busybox,alpine:3.*", "alpine:2.0", false},
		{"busybox", "Not An Image", true}, // says so itself
	} {
		var patterns []string
		if c.patterns != "" {
			patterns = strings.Split(c.patterns, ",")
		}
		l, err := ParseAllowList(patterns)
		if err != nil {
			t.Fatal(err)
		}
		err = l.Check(c.image)
		if (err == nil) != c.allowed {
			t.Errorf("DC-13 [%s] and %s: %v", c.patterns, c.image, err)
		}
		if e := (*Error)(nil); err != nil && (!errors.As(err, &e) || e.Reason != ImageNotAllowed ||
			!strings.Contains(e.Message, c.image) || !strings.Contains(e.Message, AllowFlag) || !strings.Contains(e.Message, patterns[0])) {
			t.Errorf("DC-13 the refusal does not name image, flag and patterns: %v", err)
		}
	}
	for _, p := range []string{"", " a", "a[", "[/**"} {
		if _, err := ParseAllowList([]string{p}); err == nil {
			t.Errorf("%q is taken for a pattern", p)
		}
	}
}

// TestAllowListOfIDs proves RS-12 DC-13: an image that is called by its id gets past the list by every name that it has, or not at all.
func TestAllowListOfIDs(t *testing.T) {
	const id = "sha256:5905453c494f"
	list := AllowList{"tools.example/*", "docker.io/**"}
	for _, c := range []struct {
		list    AllowList
		names   []string
		allowed bool
	}{
		{nil, nil, true},
		{list, nil, false},
		{list, []string{"tools.example/debug:1"}, true},
		{list, []string{"evil.test/evil:1"}, false},
		{list, []string{"tools.example/debug:1", "evil.test/evil:1"}, false},
		{list, []string{"<none>"}, false},
	} {
		w := start(t, Config{}, id)
		w.names = map[string][]string{id: c.names}
		if err := w.Allowed(t.Context(), c.list, id); (err == nil) != c.allowed {
			t.Errorf("%v with names %v: %v", c.list, c.names, err)
		}
	}
}
