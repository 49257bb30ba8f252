// SPDX-License-Identifier: Apache-2.0

package imagename

import (
	"strings"
	"testing"
)

const someDigest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// TestPatterns proves EC-21 IX-07: what a pattern lets in and what it keeps out, however a name is written.
// ATTACK A22.
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, image string
		in, out        bool // as a pattern of what may come in, and of what is kept out
	}{
		{"nginx:*", "nginx:1", true, true},
		{"nginx:*", "nginx", true, true},
		{"nginx:*", "docker.io/library/nginx:1", true, true},
		{"nginx:*", "index.docker.io/library/nginx:1", true, true},
		{"nginx:*", "docker.io/nginx:1", true, true},
		{"nginx:*", "evil.example/nginx:1", false, false},
		{"nginx:*", "docker.io/evil/nginx:1", false, false},
		{"nginx", "nginx", true, true},
		{"nginx", "nginx:1", false, true},
		{"nginx", "docker.io/library/nginx@" + someDigest, false, true},
		{"nginx:1", "nginx:1@" + someDigest, false, true},
		{"nginx:1", "nginx@" + someDigest, false, false},
		{"nginx@" + someDigest, "nginx:1@" + someDigest, false, true},
		{"team/*", "docker.io/team/app", true, true},
		{"team/*", "team/app:v1", true, true},
		{"team/*", "registry.example/team/app:v1", false, false},
		{"team/**", "docker.io/team/app/deep:v1", true, true},
		{"registry.example/**", "registry.example/a/b:v1", true, true},
		{"registry.example/**", "registry.example:5000/a/b:v1", false, false},
		{"registry.example/app@sha256:*", "registry.example/app@" + someDigest, true, true},
		{"registry.example/app@sha256:*", "registry.example/app:v1@" + someDigest, false, true},
		{"registry.example/app*@sha256:*", "registry.example/app:v1@" + someDigest, true, true},
		{"localhost/**", "localhost/a:1", true, true},
		{"*.example/**", "a.example/x:1", true, true},
		{"*.example/**", "x:1", false, false},
		{"**", "x", true, true},
		{"**", "a.example/b/c@" + someDigest, true, true},
		{"*/**", "x", true, true},
		{"*/**", "a.example/b:1", true, true},
		{"*/app", "a.example/app", true, true},
		{"tools*/app", "tools1/app", true, true},
		{"tools*/app*", "docker.io/tools1/app:2", true, true},
		{"tools*/app", "tools.evil.example/app", false, true},
		{"tools?evil/**", "tools.evil/app", false, true},
		{"tool[a-z]/**", "toolx/app/deep:1", true, true},
		{"tools-*.example/**", "tools-1.example/app", true, true},
		{"wherry.dev/toolbox*", "wherry.dev/toolbox", true, true},
		{"registry.example/old/*", "Registry.EXAMPLE/old/app:v1", false, true},
		{"registry.example/old/*", "registry.example:443/old/app:v1@" + someDigest, false, true},
		{"registry.example/old/*:v1", "registry.example:443/old/app:v1@" + someDigest, false, true},
		{"Registry.example:443/old/*", "registry.example/old/app", false, true},
		{"nginx", "registry-1.docker.io/library/nginx:1", false, true},
		{"team/**", "REGISTRY.hub.docker.com/team/app", false, true},
		{"registry.example:5000/**", "registry.example/a", false, false},
		{"registry.example/old/*", "registry.example:0443/old/app", false, true},
		{"registry.example:5000/**", "registry.example:05000/a", false, true},
		{"team/**", "index.docker.io:00443/team/app", false, true},
		{"[ab]x.example:5000/**", "ax.example:5000/a", true, true},
	} {
		if err := Check(c.pattern); err != nil {
			t.Errorf("%s: %v", c.pattern, err)
		}
		ref, err := Parse(c.image)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := (Patterns{c.pattern}).Match(ref, c.image); ok != c.in {
			t.Errorf("%s lets %s in: %t", c.pattern, c.image, ok)
		}
		if p, ok := (Patterns{"other.example/x", c.pattern}).Touch(ref, c.image); ok != c.out || ok && p != c.pattern {
			t.Errorf("%s keeps %s out: %t (%s)", c.pattern, c.image, ok, p)
		}
	}
	for pattern, want := range map[string]string{
		"": "is empty", " a": "spaces", "a[": "syntax error", "[/**": "syntax error", "a/**/b": "only allowed at the end", "a**": "only allowed at the end",
	} {
		if err := Check(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// FuzzPatterns proves EC-21: no pattern and no name makes it panic, and a pattern that lets an image in would keep it out too.
func FuzzPatterns(f *testing.F) {
	f.Add("nginx:*", "nginx")
	f.Add("a[", "x/y")
	f.Add("/**", "localhost:5000/a@sha256:00")
	f.Fuzz(func(t *testing.T, pattern, image string) {
		ref, err := Parse(image)
		if err != nil || Check(pattern) != nil {
			return
		}
		_, in := Patterns{pattern}.Match(ref, image)
		_, out := Patterns{pattern}.Touch(ref, image)
		if in && !out {
			t.Errorf("%q lets %q in and does not keep it out", pattern, image)
		}
	})
}
