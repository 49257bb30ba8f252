// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecondTry runs tools/gotest.sh on a module of three packages: what fails once is told and refuses nothing, what
// fails twice, or cannot be built, does (docs/decisions/042-what-refuses-a-change.md).
func TestSecondTry(t *testing.T) {
	script, err := os.ReadFile("../../tools/gotest.sh")
	if err != nil {
		t.Fatal(err)
	}
	const once = `package a
import ("os"; "testing")
func TestOnce(t *testing.T) {
	if _, err := os.Stat("../seen"); err != nil {
		os.WriteFile("../seen", nil, 0o600)
		t.Fatal("the first time")
	}
}
func TestAlways(t *testing.T) { if os.Getenv("FAIL") == "always" { t.Fatal("always") } }
`
	const ends = `package b
import ("os"; "testing")
func TestEnds(t *testing.T) {
	if _, err := os.Stat("../ended"); err != nil {
		os.WriteFile("../ended", nil, 0o600)
		os.Exit(3)
	}
}
`
	for name, row := range map[string]struct {
		environment []string
		more        string // in package c
		succeeds    bool
		told        string // in bin/seen-once
		says        []string
		not         string
	}{
		"once": {succeeds: true, told: "again/a ^(TestOnce)$\nagain/b .\n", says: []string{
			"run again, alone: again/a ^(TestOnce)$", "run again, alone: again/b .", "failed once, and not when run again"}},
		"once, but strict": {environment: []string{"STRICT=1"}, told: "again/a ^(TestOnce)$\nagain/b .\n", says: []string{
			"run again, alone: again/a ^(TestOnce)$", "failed once, and not when run again"}},
		"always, and strict": {environment: []string{"FAIL=always", "STRICT=1"}, told: "again/b .\n", says: []string{
			"which is to be explained: see above for\n    again/b .\n"}, not: "see above for\n    again/a"},
		"flags":           {environment: []string{"TESTFLAGS=-run=TestNothing -v"}, succeeds: true, says: []string{"no tests to run"}},
		"always":          {environment: []string{"FAIL=always"}, told: "again/b .\n", says: []string{"again/a ^(TestOnce|TestAlways)$"}},
		"no second try":   {environment: []string{"AGAIN=0"}, not: "run again"},
		"cannot be built": {more: "nonsense", not: "run again"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"go.mod": "module again\n\ngo 1.26\n", "a/a_test.go": once,
				"b/b_test.go": ends, "c/c.go": "package c\n" + row.more, "tools/gotest.sh": string(script)} {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("bash", "tools/gotest.sh", "-count=1", "./...")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), append([]string{"AGAIN=1"}, row.environment...)...)
			output, err := cmd.CombinedOutput()
			if (err == nil) != row.succeeds {
				t.Errorf("the run: %v\n%s", err, output)
			}
			for _, say := range row.says {
				if !strings.Contains(string(output), say) {
					t.Errorf("it does not say %q:\n%s", say, output)
				}
			}
			if row.not != "" && strings.Contains(string(output), row.not) {
				t.Errorf("it says %q:\n%s", row.not, output)
			}
			told, _ := os.ReadFile(filepath.Join(dir, "bin/seen-once"))
			if string(told) != row.told {
				t.Errorf("seen once: %q, want %q", told, row.told)
			}
		})
	}
}
