// SPDX-License-Identifier: Apache-2.0

package fail

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// child is what the test's own program does when it is started again: its terms are read when it starts.
func child(file string) {
	for range 2 {
		err := WriteFile("p:write", os.WriteFile)(file, []byte("whole"), 0o600)
		if err != nil && !errors.Is(err, ErrInjected) {
			panic(err)
		}
	}
	os.Exit(0)
}

// TestTerms: each fault does what it says, at the pass that the terms name, and once, however often the program is started.
func TestTerms(t *testing.T) {
	if file := os.Getenv("FAIL_CHILD"); file != "" {
		child(file)
	}
	for _, c := range []struct {
		terms string
		dies  bool
		text  string // of the file after the first run
	}{
		{`p:write=1*return("die")`, true, "whole"},
		{`p:write=1*return("before")`, true, ""},
		{`p:write=1*return("torn")`, true, "wh"},
		{`p:write=1*off->1*return("torn")`, true, "wh"},
		{`p:write=2*off->1*return("torn")`, false, "whole"},
		{`p:write=2*return("error")`, false, "whole"}, // once: the second write is made
		{`p:write=1*off->1*return("lost")`, false, "whole"},
		{`other:write=1*return("die")`, false, "whole"},
	} {
		t.Run(c.terms, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "file")
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "done"), 0o755), os.WriteFile(filepath.Join(dir, "passed"), nil, 0o644)); err != nil {
				t.Fatal(err)
			}
			if killed := start(t, dir, file, c.terms); killed != c.dies {
				t.Errorf("killed: %v, want %v", killed, c.dies)
			}
			if text, _ := os.ReadFile(file); string(text) != c.text { // "" if it is not there
				t.Errorf("the file has %q, want %q", text, c.text)
			}
			if start(t, dir, file, c.terms) {
				t.Error("it happened twice")
			}
			if text, _ := os.ReadFile(filepath.Join(dir, "passed")); !strings.HasPrefix(string(text), "p:write\n") {
				t.Errorf("recorded: %q", text)
			}
		})
	}
}

// start runs the child and tells whether it was killed.
func start(t *testing.T, dir, file, terms string) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestTerms$")
	cmd.Env = append(os.Environ(), "FAIL_CHILD="+file, "FAILPOINTS_DIR="+dir, "GOFAIL_FAILPOINTS="+terms)
	out, err := cmd.CombinedOutput()
	var end *exec.ExitError
	if err != nil && !errors.As(err, &end) || end != nil && end.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%v: %s", err, out)
	}
	return end != nil
}
