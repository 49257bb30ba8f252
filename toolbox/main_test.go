// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// linkDir holds links by the commands' names to this test's program, which then is the toolbox.
var linkDir string

// careless is a program that is the first of its PID namespace and does not care for orphans.
const careless = "careless"

func beCareless() {
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err = errors.Join(err, unix.Mount("proc", "/proc", "proc", 0, "")); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestMain is the toolbox when it is called by the name of a command.
func TestMain(m *testing.M) {
	if _, ok := find(filepath.Base(os.Args[0])); ok || filepath.Base(os.Args[0]) == "toolbox" {
		main()
	}
	if os.Args[0] == careless {
		beCareless()
		os.Exit(0)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	if linkDir, err = os.MkdirTemp("", "toolbox-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(linkDir)
	for _, a := range applets() {
		if err := os.Symlink(self, filepath.Join(linkDir, a.Name)); err != nil {
			panic(err)
		}
	}
	if err := os.Symlink(self, filepath.Join(linkDir, "toolbox")); err != nil {
		panic(err)
	}
	return m.Run()
}

// hangs is the time after which a command that should have ended by then will not.
const hangs = 2 * time.Minute

// command prepares a command that does not last long. If it hangs, its output ends with what its goroutines wait for, and
// the other tests go on.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	t.Cleanup(cancel)
	cmd := lasting(ctx, dir, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGQUIT) }
	return cmd
}

// lasting prepares a command of the toolbox, which sees nothing of the machine's programs.
func lasting(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(linkDir, args[0]), args[1:]...)
	cmd.Args[0] = args[0]
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + linkDir, "HOME=/nonexistent", "TZ=UTC", "PS1=$ "}
	cmd.WaitDelay = time.Minute
	return cmd
}

// do runs a command to its end.
func do(t *testing.T, dir, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t, dir, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v\n%s%s", args, err, out.String(), errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Every command has help, and refuses what it does not know.
func TestHelpAndUnknownFlags(t *testing.T) {
	takesAll := map[string]bool{"echo": true, "printf": true, "test": true, "[": true, "true": true, "false": true}
	for _, a := range applets() {
		if a.Name == "true" || a.Name == "false" {
			continue
		}
		out, _, code := do(t, "/", "", a.Name, "--help")
		if code != 0 || !strings.HasPrefix(out, "Usage: "+a.Name) || len(strings.Split(out, "\n")) < 3 {
			t.Errorf("%s --help: code %d, %q", a.Name, code, out)
		}
		if takesAll[a.Name] {
			continue
		}
		if out, errs, code := do(t, "/", "", a.Name, "--no-such-flag"); code != 2 || out != "" || !strings.HasPrefix(errs, a.Name+": ") {
			t.Errorf("%s --no-such-flag: code %d, %q, %q; want 2 and a message", a.Name, code, out, errs)
		}
	}
	if out, _, code := do(t, "/", "", "help"); code != 0 || !strings.Contains(out, "\n  jq ") || !strings.Contains(out, "\n  sh ") {
		t.Errorf("help: code %d, %q", code, out)
	}
	if out, _, code := do(t, "/", "", "sh", "-c", "help ss"); code != 0 || !strings.HasPrefix(out, "Usage: ss ") {
		t.Errorf("help ss: code %d, %q", code, out)
	}
	if _, errs, code := do(t, "/", "", "help", "nothing"); code != 1 || !strings.Contains(errs, "there is no command") {
		t.Errorf("help nothing: code %d, %q", code, errs)
	}
	if _, errs, code := do(t, "/", "", "toolbox", "nothing"); code != 127 || !strings.Contains(errs, "there is no command") {
		t.Errorf("toolbox nothing: code %d, %q", code, errs)
	}
	if out, _, code := do(t, "/", "", "toolbox", "echo", "by name"); code != 0 || out != "by name\n" {
		t.Errorf("toolbox echo: code %d, %q", code, out)
	}
}
