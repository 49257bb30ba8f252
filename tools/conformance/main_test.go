// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRun: a failure that is known is no fault; one that is not, and one that is none any more, are.
func TestRun(t *testing.T) {
	spec := func(name, state, message string) string {
		return `{"ContainerHierarchyTexts":["[sig-a] Group"],"LeafNodeText":"` + name + `","LeafNodeType":"It","State":"` + state +
			`","Failure":{"Message":"` + message + `"}}`
	}
	for name, row := range map[string]struct {
		specs []string
		known string
		want  string
		fails bool
	}{
		"all as expected": {[]string{spec("works", "passed", ""), spec("cannot", "failed", "no\\nmore"), spec("left out", "skipped", "")},
			"# why\n[sig-a] Group cannot\tno hardware\n", "1 specs passed, 1 failed; 0 not as expected", false},
		"a new failure":      {[]string{spec("works", "failed", "it broke\\nhere")}, "", "FAILED  [sig-a] Group works\n        it broke\n", true},
		"one that timed out": {[]string{spec("works", "timedout", "too slow")}, "", "FAILED  [sig-a] Group works", true},
		"one that works now": {[]string{spec("works", "passed", "")}, "[sig-a] Group works\tbroken", "take it off the list", true},
		"nothing was run":    {nil, "", "0 specs passed", true},
		"a list without why": {[]string{spec("works", "passed", "")}, "[sig-a] Group works", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			report, known := filepath.Join(dir, "report.json"), filepath.Join(dir, "known.txt")
			if err := os.WriteFile(report, []byte(`[{"SpecReports":[`+strings.Join(row.specs, ",")+`]}]`), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(known, []byte(row.known), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err := run([]string{known, report}, &out)
			if (err != nil) != row.fails || !strings.Contains(out.String(), row.want) {
				t.Errorf("%v:\n%s", err, out.String())
			}
		})
	}
}
