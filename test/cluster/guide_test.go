// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/wherryproject/wherry/internal/check/guides"
)

//go:embed testdata/guide.txt
var guideScript string

// TestGuide types the commands of docs/guides/debugging-clusters.md as they stand there, in its order: TestGuides of
// test/e2e has no cluster to install anything in. testdata/guide.txt says what must come of each. DA-05, DA-14.
func TestGuide(t *testing.T) {
	a := admin(t)
	pages, err := guides.Parse(guideScript)
	check(t, err)
	d := newDesk(t, a)
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join("../..", page.Path))
		check(t, err)
		typed, err := page.Match(string(text))
		check(t, err)
		for i, s := range page.Steps {
			d.does(s, typed[i])
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// desk is where somebody sits who reads the guide: a folder, with the programs that the guide speaks of.
type desk struct {
	t   *testing.T
	dir string
	env []string
}

func newDesk(t *testing.T, a user) desk {
	t.Helper()
	findable(t)
	root := t.TempDir()
	d := desk{t, filepath.Join(root, "home"), nil}
	programs, config := filepath.Join(root, "programs"), filepath.Join(root, "kubeconfig")
	check(t, os.Mkdir(programs, 0o755))
	check(t, os.CopyFS(d.dir, os.DirFS("testdata/guide")))
	text, err := os.ReadFile(a.kubeconfig) // a copy, whose context has another name
	check(t, err)
	check(t, os.WriteFile(config, text, 0o600))
	for name, path := range map[string]string{"wherry": os.Getenv("WHERRY"), "kubectl": os.Getenv("KUBECTL"),
		"helm": os.Getenv("HELM"), "kubectl-wherry": "wherry"} {
		check(t, os.Symlink(path, filepath.Join(programs, name)))
	}
	for name, script := range map[string]string{"sudo": `exec "$@"`,
		"ctr": "exec " + os.Getenv("CTR") + " --address " + os.Getenv("CLUSTER_CRI") + ` "$@"`} {
		check(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	d.env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + d.dir, "KUBECONFIG=" + config, "TERM=xterm"}
	return d
}

// usual is where agents look for the runtime before they look where one of the machine's own may be, which is Docker's
// then (internal/enginesocket).
const usual = "/run/k0s/containerd.sock"

// findable has the cluster's runtime where agents find it by themselves, as the guide's first commands name none.
func findable(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(usual); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is not free for the cluster's own: %v", usual, err)
	}
	check(t, os.MkdirAll(filepath.Dir(usual), 0o755))
	if err := os.Remove(usual); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a test that was killed, to nothing
		t.Fatal(err)
	}
	check(t, os.Symlink(os.Getenv("CLUSTER_CRI"), usual))
	t.Cleanup(func() {
		if err := os.Remove(usual); err != nil {
			t.Error(err)
		}
		_ = os.Remove(filepath.Dir(usual)) // unless there is something else in it
	})
}

// does does what a step says. The next one needs what it has done.
func (d desk) does(s guides.Step, command string) {
	d.t.Helper()
	if s.Kind == guides.NotTyped {
		return
	}
	began := time.Now()
	out, err := d.types(s, command)
	d.t.Logf("%s %s (%v)", s.Kind, command, time.Since(began).Round(time.Millisecond))
	if (err != nil) != (s.Kind == guides.Refuses) {
		d.t.Fatalf("guide.txt, line %d: %s\n%v\n%s", s.Line, command, err, out)
	}
	for _, want := range s.Wants {
		if !strings.HasPrefix(want, "<") && !d.printed(s, out, want) {
			d.t.Fatalf("guide.txt, line %d: %s\nprinted\n%swhich is not %s", s.Line, command, out, want)
		}
	}
}

// types runs a command to its end, and gives all that it has printed.
func (d desk) types(s guides.Step, command string) (string, error) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*patience) // an installation takes its time
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env, cmd.WaitDelay = d.dir, d.env, 5*time.Second
	switch s.Kind {
	case guides.AtTerminal:
		return d.answers(s, cmd)
	case guides.OfScript, guides.Works, guides.Refuses:
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	d.t.Fatalf("guide.txt, line %d: this test does no steps of the kind %q", s.Line, s.Kind)
	return "", nil
}

func (d desk) printed(s guides.Step, out, want string) bool {
	d.t.Helper()
	is, err := guides.Prints(out, want)
	if err != nil {
		d.t.Fatalf("guide.txt, line %d: %v", s.Line, err)
	}
	return is
}

// answers runs a command at a terminal, where somebody reads what it shows, and types what lines with "<" say. It gives
// all that was shown.
func (d desk) answers(s guides.Step, cmd *exec.Cmd) (string, error) {
	d.t.Helper()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // all that has the terminal
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	check(d.t, err)
	defer terminal.Close()
	shown, buffer := "", make([]byte, 4096)
	for _, want := range s.Wants {
		if answer, ok := strings.CutPrefix(want, "<"); ok {
			_, err := io.WriteString(terminal, strings.TrimSpace(answer)+"\r")
			check(d.t, err)
			continue
		}
		for !d.printed(s, shown, want) {
			n, err := terminal.Read(buffer)
			if shown += string(buffer[:n]); err != nil {
				return shown, errors.Join(err, cmd.Wait())
			}
		}
	}
	rest, _ := io.ReadAll(terminal) // ends with EIO when the other side is closed
	return shown + string(rest), cmd.Wait()
}
