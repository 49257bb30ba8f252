// SPDX-License-Identifier: Apache-2.0

package env

import (
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestExpand proves PL-06 for command and args.
func TestExpand(t *testing.T) {
	envs := []*runtimeapi.KeyValue{{Key: "A", Value: []byte("1")}, {Key: "B", Value: []byte("$(A)")}, {Key: "", Value: []byte("empty")}}
	for in, want := range map[string]string{
		"":               "",
		"plain":          "plain",
		"$(A)":           "1",
		"x$(A)y$(A)z":    "x1y1z",
		"$(B)":           "$(A)", // not twice
		"$(NO)":          "$(NO)",
		"$$(A)":          "$(A)",
		"$$$(A)":         "$1",
		"$$$$(A)":        "$$(A)",
		"$A $ $":         "$A $ $",
		"$":              "$",
		"$$":             "$",
		"$(A":            "$(A",
		"$(A $(A)":       "$(A $(A)",
		"$($(A))":        "$($(A))",
		"$()":            "empty",
		"a $(A) $$ $(B)": "a 1 $ $(A)",
	} {
		if got := Expand([]string{in}, envs); !slices.Equal(got, []string{want}) {
			t.Errorf("PL-06 Expand(%q) = %q, want %q", in, got, want)
		}
	}
	if Expand(nil, envs) != nil {
		t.Error("no words are no words: the image's own are used")
	}
}

// TestExpandStrict proves PL-05: subPathExpr with an unknown variable is an error that names it.
func TestExpandStrict(t *testing.T) {
	envs := []*runtimeapi.KeyValue{{Key: "POD", Value: []byte("web")}}
	if got, err := ExpandStrict("logs/$(POD)", envs); got != "logs/web" || err != nil {
		t.Error(got, err)
	}
	envs = append(envs, &runtimeapi.KeyValue{Key: "EMPTY"})
	if _, err := ExpandStrict("$(EMPTY)", envs); err == nil || !strings.Contains(err.Error(), `missing value for "EMPTY"`) {
		t.Error("an empty variable means the whole volume:", err)
	}
	if _, err := ExpandStrict("logs/$(NO)", envs); err == nil || !strings.Contains(err.Error(), `missing value for "NO"`) {
		t.Error(err)
	}
}

// FuzzExpand proves PL-06: escaping undoes expansion, unknown names change nothing but $$, and no input is too odd.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "$", "$$", "$(A)", "$$(A)", "$(A", "$($(A))", "$(A)$(B)$$", "ä$(ä)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		known := func(name string) (string, bool) { return "<" + name + ">", true }
		unknown := func(string) (string, bool) { return "", false }
		if got := expand(strings.ReplaceAll(s, "$", "$$"), known); got != s {
			t.Errorf("escaped %q became %q", s, got)
		}
		if !strings.Contains(s, "$") && expand(s, known) != s {
			t.Errorf("%q without $ changed", s)
		}
		if !strings.Contains(s, "$$") && expand(s, unknown) != s {
			t.Errorf("%q with nothing known became %q", s, expand(s, unknown))
		}
		if got := expand(s, known); len(got) > len(s) {
			t.Errorf("%q grew to %q", s, got)
		}
	})
}
