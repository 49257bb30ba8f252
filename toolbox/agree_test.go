// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// leastInvocations is how often each command is run at least.
const leastInvocations = 8

// TestAgreesWithBusybox runs the commands of the toolbox and those of Debian's busybox with the same arguments in the same folder,
// as testdata/agree lists them: what they print, how they end, whether they complain and what they leave in the folder must be
// the same. Where busybox and GNU's programs (Debian's essential packages) differ from one another, either will do.
// Known differences are in testdata/agree/differences.txt, with the reason; one that no longer shows is an error.
func TestAgreesWithBusybox(t *testing.T) {
	busybox := findBusybox(t)
	cases := readInvocations(t)
	known := readDifferences(t)
	fresh := untouched(t)
	seed := rand.Uint64()
	t.Logf("order: seed %d", seed)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })

	of := map[string][]invocation{}
	for _, c := range cases {
		of[c.args[0]] = append(of[c.args[0]], c)
	}
	var mu sync.Mutex
	shown, ran := map[int]bool{}, map[string]bool{}
	t.Run("of", func(t *testing.T) {
		for name, list := range of {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if isolated(name) && os.Geteuid() != 0 {
					t.Skip("only root has a network of its own, in which this prints what is known")
				}
				for _, c := range list {
					found, err := c.compare(t, fresh, busybox)
					if err != nil {
						t.Errorf("%s: %v", c.line, err)
					}
					for _, f := range found {
						at := slices.IndexFunc(known, func(d difference) bool { return d.explains(f) })
						if at < 0 {
							t.Errorf("%s\n%s differs\n%s: %s\ntoolbox: %s", f.line, f.what, f.by, f.theirs, f.ours)
						}
						mu.Lock()
						shown[at] = true
						mu.Unlock()
					}
				}
				mu.Lock()
				ran[name] = true
				mu.Unlock()
			})
		}
	})
	for i, d := range known {
		if !shown[i] && !slices.ContainsFunc(d.names, func(name string) bool { return !ran[name] }) {
			t.Errorf("differences.txt: no invocation shows %s any more: take the row out", d)
		}
	}
}

// findBusybox finds Debian's busybox where its package or tools/setup.sh puts it.
func findBusybox(t *testing.T) string {
	t.Helper()
	root := "../bin/debian"
	for _, path := range []string{"/bin/busybox", "/usr/bin/busybox", root + "/bin/busybox", root + "/usr/bin/busybox"} {
		full, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(full).Output(); err == nil && strings.Contains(string(out), "Debian") {
			return full
		}
	}
	t.Skip("Debian's busybox is not here, to compare with (apt-get install busybox-static, or tools/setup.sh busybox)")
	return ""
}

// outcome is what can be seen of a run.
type outcome struct {
	stdout, stderr string
	code           int
	files          string // the folder afterwards
}

// finding is that something of an invocation's outcome is not the same.
type finding struct {
	name, line, what string
	theirs, ours     string
	by               string // whose theirs is
}

// compare runs an invocation with the toolbox, with busybox and, where those differ, with GNU's program, if there is one.
func (c invocation) compare(t *testing.T, fresh map[string]string, busybox string) (found []finding, err error) {
	ours, err := c.run(t, fresh, filepath.Join(linkDir, c.args[0]), linkDir)
	if err != nil {
		return nil, fmt.Errorf("toolbox: %w", err)
	}
	return c.judge(t, fresh, busybox, ours, c.differences)
}

// judge compares an outcome with those of busybox and GNU's program.
func (c invocation) judge(
	t *testing.T, fresh map[string]string, busybox string, ours outcome, differences func(theirs, ours outcome) []finding,
) (found []finding, err error) {
	theirs, err := c.runIn(t, fresh, busybox)
	if err != nil {
		return nil, fmt.Errorf("busybox: %w", err)
	}
	if found = differences(theirs, ours); len(found) == 0 {
		return nil, nil
	}
	if onlyBusybox(c.args[0]) {
		return found, nil
	}
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/sbin"} {
		program := filepath.Join(dir, c.args[0])
		if to, err := filepath.EvalSymlinks(program); err != nil || strings.HasSuffix(to, "busybox") {
			continue
		}
		gnu, err := c.run(t, fresh, program, "/usr/bin:/bin")
		if err != nil {
			return nil, fmt.Errorf("GNU's: %w", err)
		}
		other := differences(gnu, ours)
		for i := range other {
			other[i].by = "GNU"
		}
		if len(other) < len(found) { // the nearer one counts
			return other, nil
		}
		break
	}
	return found, nil
}

// differences are those of two outcomes.
func (c invocation) differences(theirs, ours outcome) (found []finding) {
	differ := func(what, theirs, ours string) {
		if theirs != ours {
			found = append(found, finding{name: c.args[0], line: c.line, what: what, theirs: theirs, ours: ours, by: "busybox"})
		}
	}
	if c.args[0] == "find" { // which finds files in the order of the folder
		theirs.stdout, ours.stdout = sorted(theirs.stdout), sorted(ours.stdout)
	}
	if of := shape(c.args[0]); of != nil {
		theirs.stdout, ours.stdout = of(theirs.stdout), of(ours.stdout)
	}
	differ("stdout", brief(theirs.stdout), brief(ours.stdout))
	if c.args[0] == "vi" {
		theirs.files, ours.files = withoutFolder(theirs.files), withoutFolder(ours.files)
	}
	differ("files", theirs.files, ours.files)
	// A command that is not used as it is meant ends with 2 in all of the toolbox; in busybox it is 1 mostly.
	if usage := ours.code == 2 && strings.Contains(ours.stderr, "(see --help)") && theirs.code > 0 && theirs.stderr != ""; !usage {
		differ("code", fmt.Sprint(theirs.code), fmt.Sprint(ours.code))
	}
	if (theirs.stderr == "") != (ours.stderr == "") {
		differ("stderr", brief(theirs.stderr), brief(ours.stderr))
	}
	return found
}

func sorted(lines string) string {
	return strings.Join(slices.Sorted(strings.Lines(lines)), "")
}

// untouched describes the folder that invocations find.
func untouched(t *testing.T) map[string]string {
	t.Helper()
	above, err := os.MkdirTemp(scratch(), "agree-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(above)
	dir := filepath.Join(above, "w")
	if err := furnish(dir); err != nil {
		t.Fatal(err)
	}
	fresh, err := describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

// scratch is the folder for those of invocations: one in memory, where there is one, since that takes a third of the time.
func scratch() string {
	if unix.Access("/dev/shm", unix.W_OK|unix.X_OK) == nil {
		return "/dev/shm"
	}
	return ""
}

// brief quotes a text; of a long one, the middle is left out and its sum is put there.
func brief(text string) string {
	if len(text) > 2000 {
		return fmt.Sprintf("%q ... %q, %d bytes, %x", text[:200], text[len(text)-200:], len(text), checksum(text))
	}
	return fmt.Sprintf("%q", text)
}

// runIn runs an invocation with a program that is many commands, which finds only these.
func (c invocation) runIn(t *testing.T, fresh map[string]string, program string) (o outcome, err error) {
	dir, err := os.MkdirTemp(scratch(), "agree-")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "bin")
	if err := linkAll(commonCommands(), program, path); err != nil {
		return o, err
	}
	o, err = c.run(t, fresh, program, path)
	o.stdout = strings.ReplaceAll(o.stdout, path, linkDir)
	return o, err
}

// run runs an invocation in a folder of its own.
func (c invocation) run(t *testing.T, fresh map[string]string, program, path string) (o outcome, err error) {
	dir, err := os.MkdirTemp(scratch(), "agree-")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir) // now: there are thousands
	work := filepath.Join(dir, "w")
	if err := furnish(work); err != nil {
		return o, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Args, cmd.Dir = c.args, work
	cmd.Env = []string{"PATH=" + path, "HOME=/nonexistent", "TZ=UTC", "LC_ALL=C"}
	cmd.WaitDelay = time.Second
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS} // busybox's hostname would name this machine anew
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if c.stdin != "" {
		in, err := os.Open(filepath.Join(work, c.stdin))
		if err != nil {
			return o, err
		}
		defer in.Close()
		cmd.Stdin = in
	}
	if err = c.start(cmd); err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		return o, fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	plain := func(b bytes.Buffer) string { return strings.ReplaceAll(b.String(), work, "DIR") }
	o = outcome{stdout: plain(out), stderr: plain(errs), code: cmd.ProcessState.ExitCode()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		o.code = 128 + int(status.Signal()) // as a shell says it
	}
	after, err := describe(work)
	o.files = strings.ReplaceAll(changes(fresh, after), work, "DIR")
	return o, err
}

// commonCommands are those that an invocation may run by itself, as xargs does.
func commonCommands() []string {
	return []string{"cat", "echo", "env", "false", "ls", "printf", "head", "sed", "sh", "sleep", "sort", "test", "touch", "tr", "true", "wc", "yes"}
}

func linkAll(names []string, to, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
