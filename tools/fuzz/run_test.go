// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

// TestRun fuzzes a module of its own: what is found is told, with its input whole, and the input is left where git sees it.
func TestRun(t *testing.T) {
	folder := example(t)
	var out bytes.Buffer
	f := fuzzer{long: 200 * time.Millisecond, jobs: 2, binaries: t.TempDir(), corpus: t.TempDir(), out: &out}
	// However long it takes until the first input is tried, the others need no time.
	for len(written(t, folder, "FuzzBad")) == 0 && f.long < time.Hour {
		out.Reset()
		f.long *= 2
		if err := f.run(t.Context(), []string{folder}); err == nil {
			t.Fatalf("nothing failed:\n%s", &out)
		}
	}
	for _, file := range written(t, folder, "FuzzBad") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), indented(string(text))) || !strings.Contains(out.String(), file) {
			t.Errorf("the input %s is not told", file)
		}
	}
	for _, line := range []string{
		"ok   " + folder + " FuzzGood", "FAIL " + folder + " FuzzBad: an input fails", "FAIL " + folder + " FuzzSeed: the seed FuzzSeed/seed#0 fails",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("there is no line %q", line)
		}
	}
	if t.Failed() {
		t.Logf("%s", &out)
	}
}

// TestAgain lets an input run again that took too long on a busy machine, and one that fails each time.
func TestAgain(t *testing.T) {
	folder := example(t)
	f := fuzzer{long: time.Second, jobs: 1, binaries: t.TempDir(), corpus: t.TempDir(), out: &bytes.Buffer{}}
	binary, err := f.build(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]verdict{"FuzzHung": passed, "FuzzBad": failed} {
		input := filepath.Join("testdata", "fuzz", name, "77")
		file := filepath.Join(folder, input)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("go test fuzz v1\nstring(\"odd\")\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		r := f.again(t.Context(), report{target: target{folder, name}, binary: binary, finding: finding{doubted, "slow", input}})
		if r.verdict != want {
			t.Errorf("%s: %+v", name, r)
		}
		if kept := len(written(t, folder, name)) == 1; kept != (want == failed) {
			t.Errorf("%s: the input is kept: %v", name, kept)
		}
	}
}

// example unpacks the module of testdata.
func example(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "example")
	archive, err := txtar.ParseFile("testdata/example.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		if err := os.WriteFile(filepath.Join(folder, file.Name), file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func written(t *testing.T, folder, name string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "testdata", "fuzz", name, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestTargets finds what there is to run in the example, by package.
func TestTargets(t *testing.T) {
	found, err := targets([]string{example(t)})
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	var names []string
	for _, one := range found[0] {
		names = append(names, one.name)
	}
	if want := []string{"FuzzGood", "FuzzBad", "FuzzSeed", "FuzzHung", "FuzzKilled"}; !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
}

// TestShare: few targets run for half a minute, many for a share of two and a half, none for less than ten seconds.
func TestShare(t *testing.T) {
	for _, test := range []struct {
		targets, jobs int
		want          time.Duration
	}{{0, 8, 30 * time.Second}, {10, 8, 30 * time.Second}, {50, 8, 24 * time.Second}, {50, 16, 30 * time.Second}, {1000, 8, 10 * time.Second}} {
		if got := share([][]target{make([]target, test.targets/2), make([]target, test.targets-test.targets/2)}, test.jobs); got != test.want {
			t.Errorf("%d targets, %d at a time: %v, wanted %v", test.targets, test.jobs, got, test.want)
		}
	}
}

// TestParts: as many days in a row as there are parts run every package once, also over the end of a year.
func TestParts(t *testing.T) {
	packages := make([][]target, 7)
	for i := range packages {
		packages[i] = make([]target, i+1)
	}
	seen := map[int]int{}
	for day := range 3 {
		for _, p := range partOf(3, time.Date(2026, 12, 30+day, 0, 0, 0, 0, time.UTC)).of(packages) {
			seen[len(p)]++
		}
	}
	for i := range packages {
		if seen[i+1] != 1 {
			t.Errorf("package %d runs %d times", i, seen[i+1])
		}
	}
	if got := (portion{}).of(packages); len(got) != 7 {
		t.Errorf("all are %d", len(got))
	}
}
