// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/check/guides"
)

//go:embed testdata/kubectl.txt
var kubectlScript string

// step is one command of the script and what it must print.
type step struct {
	line  int
	run   string
	fails bool
	wants []string
}

func parseSteps(t *testing.T, script string) (all []step) {
	t.Helper()
	for i, line := range strings.Split(script, "\n") {
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "$ "), strings.HasPrefix(line, "! "):
			all = append(all, step{line: i + 1, run: line[2:], fails: line[0] == '!'})
		case len(all) == 0:
			t.Fatalf("line %d of the script: no command before it", i+1)
		default:
			all[len(all)-1].wants = append(all[len(all)-1].wants, line)
		}
	}
	return all
}

// TestKubectlTable runs kubectl's commands one after another against one server: every one that makes sense here works, and every
// other says why not (testdata/kubectl.txt).
func TestKubectlTable(t *testing.T) {
	t.Parallel()
	srv := own(t)
	dir := t.TempDir()
	files, err := filepath.Glob("testdata/kubectl/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("the script's files: %v, %v", files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// The first on the path is the Kubernetes project's own of this version, under its name.
	if err := os.Symlink(srv.World.Kubectls[0].Path, filepath.Join(dir, "kubectl")); err != nil {
		t.Fatal(err)
	}
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "KUBE") })
	env = append(env, "HOME="+dir, "KUBECONFIG="+srv.Kubeconfig, "PATH="+dir+":"+os.Getenv("PATH"),
		"OTHER_KUBECTL="+srv.World.Kubectls[len(srv.World.Kubectls)-1].Path)
	for _, s := range parseSteps(t, kubectlScript) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*Timeout) // one starts kubectl for each kind
		cmd := exec.CommandContext(ctx, "sh", "-c", s.run)
		cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, 5*time.Second
		out, err := cmd.CombinedOutput()
		cancel()
		if (err != nil) != s.fails {
			t.Errorf("line %d: %s\n%v\n%s", s.line, s.run, err, out)
			continue
		}
		for _, want := range s.wants {
			if !s.prints(t, string(out), want) {
				t.Errorf("line %d: %s\nprinted\n%swhich is not %s", s.line, s.run, out, want)
			}
		}
	}
}

func (s step) prints(t *testing.T, out, want string) bool {
	t.Helper()
	is, err := guides.Prints(out, want)
	if err != nil {
		t.Fatalf("line %d: %v", s.line, err)
	}
	return is
}
