// SPDX-License-Identifier: Apache-2.0

package imagename

import (
	"strings"
	"testing"
)

// TestParse proves PL-03: names as people write them, and words for those that are none.
func TestParse(t *testing.T) {
	const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for in, want := range map[string]Reference{
		"nginx":                    {Given: "nginx:latest", Full: "docker.io/library/nginx:latest", Registry: "docker.io", Repository: "library/nginx", Tag: "latest"},
		"team/app:v1":              {Given: "team/app:v1", Full: "docker.io/team/app:v1", Registry: "docker.io", Repository: "team/app", Tag: "v1"},
		"localhost:5000/a/b":       {Given: "localhost:5000/a/b:latest", Full: "localhost:5000/a/b:latest", Registry: "localhost:5000", Repository: "a/b", Tag: "latest"},
		"r.example/x@" + digest:    {Given: "r.example/x@" + digest, Full: "r.example/x@" + digest, Registry: "r.example", Repository: "x", Digest: digest},
		"r.example/x:v1@" + digest: {Given: "r.example/x:v1@" + digest, Full: "r.example/x:v1@" + digest, Registry: "r.example", Repository: "x", Tag: "v1", Digest: digest},
	} {
		if got, err := Parse(in); got != want || err != nil {
			t.Errorf("PL-03 Parse(%q) = %+v, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		"":                  "is empty",
		" nginx":            "spaces around",
		"Nginx":             `did you mean "nginx"?`,
		"https://r.io/x":    "leave out the scheme",
		"a b":               "contains spaces",
		"x@sha256:abc":      "couldn't parse image name",
		digest[7:]:          "couldn't parse image name",
		"x:" + digest + "!": "couldn't parse image name",
	} {
		if _, err := Parse(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("PL-03 PL-15 Parse(%q): %v, want %q", in, err, want)
		}
	}
}

// TestOwn proves PL-03: which names are wherry's, never asked of a registry, and which of them the program makes.
func TestOwn(t *testing.T) {
	for name, want := range map[string]struct{ own, builtIn bool }{
		"wherry.dev/toolbox":            {true, true},
		"wherry.dev/toolbox:v2":         {true, true},
		"wherry.dev/pause:0d344da86b14": {true, true},
		"WHERRY.DEV/toolbox":            {true, true},
		"wherry.dev:443/toolbox":        {true, true},
		"wherry.dev/pause/more":         {true, false},
		"wherry.dev/app:1":              {true, false},
		"toolbox":                       {false, false},
		"wherry.dev.example/toolbox":    {false, false},
		"example.com/wherry.dev/pause":  {false, false},
		"Not/A:Name!":                   {false, false},
	} {
		ref, _ := Parse(name)
		if ref.Own() != want.own || BuiltIn(name) != want.builtIn {
			t.Errorf("PL-03 %s: own %v, built in %v; want %v", name, ref.Own(), BuiltIn(name), want)
		}
	}
}

// FuzzParse proves PL-03: whatever the text, no panic, and what is accepted reads the same again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "nginx", "a/b:c", "localhost:5000/a@sha256:00", "[::1]:5000/x", "A", "a..b", "docker.io/library/x", "http://x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Parse(s)
		if err != nil {
			return
		}
		if r.Registry == "" || r.Repository == "" || (r.Tag == "" && r.Digest == "") {
			t.Errorf("Parse(%q) = %+v", s, r)
		}
		again, err := Parse(r.Full)
		if err != nil || again.Full != r.Full || again.Registry != r.Registry || again.Repository != r.Repository {
			t.Errorf("Parse(%q).Full = %q reads as %+v, %v", s, r.Full, again, err)
		}
	})
}
