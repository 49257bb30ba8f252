// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write the texts into testdata")

// The texts that are written, with words that mean something to a shell and to systemd.
func TestTexts(t *testing.T) {
	for name, s := range map[string]Service{
		"wherry": {Name: "wherry", Program: "/usr/local/bin/wherry", Args: []string{"server"}},
		"second": {Name: "second", Program: "/opt/my tools/wherry", Args: []string{"agent", "--data-dir", "/srv/x", "--kubeconfig", `/etc/a "b"/$k.yaml`, "--node-name=it's", "--v", "50%", ""}},
	} {
		for ending, text := range map[string]string{".service": s.Unit(), ".init": s.Script()} {
			file := filepath.Join("testdata", name+ending)
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || text != string(want) {
				t.Errorf("%s: %v, got\n%s\nwant\n%s", file, err, text, want)
			}
		}
	}
}

// fakeHost is a machine in a folder; it writes down what it is told to run.
func fakeHost(t *testing.T, systemd bool, has ...string) (Host, *[]string) {
	t.Helper()
	h := Host{Root: t.TempDir(), Has: func(command string) bool { return slices.Contains(has, command) }}
	ran := &[]string{}
	h.Run = func(_ context.Context, command ...string) error {
		*ran = append(*ran, strings.ReplaceAll(strings.Join(command, " "), h.Root, ""))
		return nil
	}
	if systemd {
		if err := os.MkdirAll(filepath.Join(h.Root, "run/systemd/system"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return h, ran
}

// A service is written, started and removed in the way of the machine.
func TestInstallAndRemove(t *testing.T) {
	s := Service{Name: "wherry", Program: "/usr/bin/wherry", Args: []string{"server"}}
	for name, c := range map[string]struct {
		systemd       bool
		has           []string
		file          string
		start         string
		begin, remove []string
	}{
		"systemd": {true, []string{"update-rc.d"}, "/etc/systemd/system/wherry.service", "systemctl start wherry",
			[]string{"systemctl daemon-reload", "systemctl enable wherry.service", "systemctl restart wherry.service"},
			[]string{"systemctl disable --now wherry.service", "systemctl daemon-reload"}},
		"Debian's scripts": {false, []string{"update-rc.d"}, "/etc/init.d/wherry", "/etc/init.d/wherry start",
			[]string{"update-rc.d wherry defaults", "/etc/init.d/wherry restart"}, []string{"/etc/init.d/wherry stop", "update-rc.d wherry remove"}},
		"Red Hat's scripts": {false, []string{"chkconfig"}, "/etc/init.d/wherry", "/etc/init.d/wherry start",
			[]string{"chkconfig --add wherry", "/etc/init.d/wherry restart"}, []string{"/etc/init.d/wherry stop", "chkconfig --del wherry"}},
		"OpenRC": {false, []string{"rc-update"}, "/etc/init.d/wherry", "/etc/init.d/wherry start",
			[]string{"rc-update add wherry default", "/etc/init.d/wherry restart"}, []string{"/etc/init.d/wherry stop", "rc-update del wherry default"}},
		"a script alone": {false, nil, "/etc/init.d/wherry", "/etc/init.d/wherry start", []string{"/etc/init.d/wherry restart"}, []string{"/etc/init.d/wherry stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, ran := fakeHost(t, c.systemd, c.has...)
			if was, err := h.Remove(t.Context(), "wherry"); was || err != nil || h.StartCommand("wherry") != "" {
				t.Errorf("before: %v, %v, %q", was, err, h.StartCommand("wherry"))
			}
			file, err := h.Install(t.Context(), s, true)
			if err != nil || file != h.Root+c.file || !slices.Equal(*ran, c.begin) {
				t.Fatalf("%s, %v, ran %q", file, err, *ran)
			}
			if got := strings.ReplaceAll(h.StartCommand("wherry"), h.Root, ""); got != c.start {
				t.Errorf("it is started by %q", got)
			}
			if h.StartsAtBoot() != (c.systemd || len(c.has) > 0) {
				t.Error("wrong about its start at boot")
			}
			*ran = nil
			if _, err := h.Install(t.Context(), s, false); err != nil || slices.Contains(*ran, c.begin[len(c.begin)-1]) {
				t.Errorf("again, without a start: %v, ran %q", err, *ran)
			}
			*ran = nil
			if was, err := h.Remove(t.Context(), "wherry"); !was || err != nil || !slices.Equal(*ran, c.remove) {
				t.Errorf("%v, %v, ran %q", was, err, *ran)
			}
			if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

// What somebody else has written is neither replaced nor removed.
func TestForeignFile(t *testing.T) {
	h, ran := fakeHost(t, true)
	file := h.unit("wherry")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("[Service]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Install(t.Context(), Service{Name: "wherry", Program: "/w", Args: []string{"server"}}, true); err == nil || !strings.Contains(err.Error(), "not created by wherry") {
		t.Errorf("install: %v", err)
	}
	if was, err := h.Remove(t.Context(), "wherry"); was || err == nil || len(*ran) > 0 {
		t.Errorf("remove: %v, %v, ran %q", was, err, *ran)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "[Service]\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// The script starts a program once, knows whether it runs, and ends it.
func TestScriptRuns(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "wherry")
	// It ends by the first signal, which a shell that waits hears at once.
	if err := os.WriteFile(program, []byte("#!/bin/sh\ntrap 'echo ended; exit 0' TERM\necho \"$@\" >\"$0.begun\"\nread x <\"$0.never\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	begun := program + ".begun"
	for _, fifo := range []string{begun, program + ".never"} {
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(dir, "script")
	text := Service{Name: "w", Program: program, Args: []string{"server", "--v", "it's"}}.Script()
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	call := func(verb string) (string, int) {
		t.Helper()
		cmd := exec.Command("/bin/sh", script, verb)
		cmd.Env = append(os.Environ(), "RUN_DIR="+dir, "LOG_DIR="+dir)
		out, err := cmd.CombinedOutput()
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := call("status"); code != 3 || !strings.Contains(out, "is not running") {
		t.Errorf("before: %d %s", code, out)
	}
	if out, code := call("start"); code != 0 || !strings.Contains(out, "w started") {
		t.Fatalf("start: %d %s", code, out)
	}
	// Until the program has begun, what stands for it has another command line. Reading waits for who writes.
	if said, err := os.ReadFile(begun); err != nil || string(said) != "server --v it's\n" {
		t.Fatalf("it was given %q, %v", said, err)
	}
	if out, code := call("status"); code != 0 || !strings.Contains(out, "w is running") {
		t.Errorf("status: %d %s", code, out)
	}
	if out, code := call("start"); code != 0 || !strings.Contains(out, "w is already running") {
		t.Errorf("start again: %d %s", code, out)
	}
	if out, code := call("stop"); code != 0 || !strings.Contains(out, "w stopped; its pods keep running") {
		t.Errorf("stop: %d %s", code, out)
	}
	if out, code := call("stop"); code != 0 || !strings.Contains(out, "is not running") {
		t.Errorf("stop again: %d %s", code, out)
	}
	if out, code := call("x"); code != 2 || !strings.Contains(out, "usage") {
		t.Errorf("wrong use: %d %s", code, out)
	}
}

// What root is to run must be root's alone.
func TestTrusted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "bin", "wherry")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Trusted(program); err != nil {
		t.Skipf("the folder of the tests is open to others: %v", err)
	}
	for name, c := range map[string]struct {
		path string
		do   func(path string) error
		undo func(path string) error
	}{
		"somebody's file":   {program, func(p string) error { return os.Chown(p, 1, 1) }, func(p string) error { return os.Chown(p, 0, 0) }},
		"everybody's file":  {program, func(p string) error { return os.Chmod(p, 0o777) }, func(p string) error { return os.Chmod(p, 0o755) }},
		"somebody's folder": {filepath.Dir(program), func(p string) error { return os.Chown(p, 1, 1) }, func(p string) error { return os.Chown(p, 0, 0) }},
		"a group's folder":  {dir, func(p string) error { return os.Chmod(p, 0o775) }, func(p string) error { return os.Chmod(p, 0o755) }},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.do(c.path); err != nil {
				t.Fatal(err)
			}
			if err := Trusted(program); err == nil || !strings.Contains(err.Error(), "users other than root can modify "+c.path) {
				t.Errorf("%v", err)
			}
			if err := c.undo(c.path); err != nil {
				t.Fatal(err)
			}
		})
	}
}
