// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module writes the files of a module into a folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[name]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// One fault of each kind is found once, at its place, and what only a test uses is used: by go vet's analyzers, by
// staticcheck's, by that for what nobody uses, and over the borders of packages. What the configuration leaves out is
// not looked for.
func TestFinds(t *testing.T) {
	root := module(t, map[string]string{
		"go.mod":           "module example.com/m\n\ngo 1.26\n",
		"staticcheck.conf": "checks = [\"all\", \"-ST1000\", \"-ST1020\", \"-ST1003\"]\n",
		"say/say.go": `package say

import "fmt"

func Sayf(format string, args ...any) { fmt.Printf(format, args...) }

const forTests = 1

const forNobody = 2
`,
		"say/say_test.go": `package say

import "testing"

func TestName(t *testing.T) {
	if len(t.Name()) == forTests {
		t.Fatal("a short name")
	}
}
`,
		"m.go": `package m

import "example.com/m/say"

func M(bad_name *int) int {
	say.Sayf("%d\n", "one")
	bad_name = bad_name
	return *bad_name
}
`})
	findings, err := look(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range findings {
		got = append(got, f.String())
	}
	want := []string{
		`m.go:6:12: example.com/m/say.Sayf format %d has arg "one" of wrong type string (printf)`,
		`m.go:7:2: self-assignment of bad_name to bad_name (SA4018)`,
		`m.go:7:2: self-assignment of bad_name (assign)`,
		`say/say.go:9:7: const forNobody is unused (U1000)`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("found:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A module that cannot be compiled is an error with its place, never one without faults.
func TestRefuses(t *testing.T) {
	for name, source := range map[string]string{"types": "package m\n\nvar n int = \"one\"\n",
		"syntax": "package m\n\nvar n int =\n"} {
		t.Run(name, func(t *testing.T) {
			root := module(t, map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n", "m.go": source})
			if findings, err := look(root); err == nil || !strings.Contains(err.Error(), "m.go:3") {
				t.Errorf("found %v, %v", findings, err)
			}
		})
	}
}

func TestAsked(t *testing.T) {
	for _, c := range []struct {
		checks []string
		want   bool
	}{
		{nil, false}, {[]string{"all"}, true}, {[]string{"all", "-S1"}, false}, {[]string{"S1"}, true},
		{[]string{"all", "-S2"}, true},
		{[]string{"-S1", "all"}, true}, {[]string{"S1", "-all"}, false},
	} {
		if got := asked(c.checks, "S1"); got != c.want {
			t.Errorf("asked(%q) is %v", c.checks, got)
		}
	}
}
