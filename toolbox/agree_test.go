// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mvdan.cc/sh/v3/shell"
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

	var mu sync.Mutex
	shown := map[int]bool{}
	var workers sync.WaitGroup
	work := make(chan invocation)
	for range runtime.NumCPU() {
		workers.Go(func() {
			for c := range work {
				found, err := c.compare(t, fresh, busybox)
				mu.Lock()
				if err != nil {
					t.Errorf("%s: %v", c.line, err)
				}
				for _, f := range found {
					at := slices.IndexFunc(known, func(d difference) bool { return d.explains(f) })
					if shown[at] = true; at < 0 {
						t.Errorf("%s\n%s differs\n%s: %s\ntoolbox: %s", f.line, f.what, f.by, f.theirs, f.ours)
					}
				}
				mu.Unlock()
			}
		})
	}
	for _, c := range cases {
		work <- c
	}
	close(work)
	workers.Wait()
	for i, d := range known {
		if !shown[i] {
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

// invocation is one run of a command: a line of a file in testdata/agree. Words are quoted as in the shell; "<FILE" at the end
// is its standard input, which is empty otherwise.
type invocation struct {
	line  string
	args  []string
	stdin string
}

// readInvocations reads all files of testdata/agree but the list of differences. Blank lines and those with # in front are comments.
func readInvocations(t *testing.T) (all []invocation) {
	t.Helper()
	files, err := filepath.Glob("testdata/agree/*.cases")
	if err != nil || len(files) == 0 {
		t.Fatal("no invocations in testdata/agree", err)
	}
	count := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range wholeLines(string(text)) {
			c, err := parseInvocation(line)
			if err != nil {
				t.Fatalf("%s: %s: %v", file, line, err)
			}
			if !known(c.args[0]) {
				t.Fatalf("%s: the toolbox has no %s", file, c.args[0])
			}
			count[c.args[0]]++
			all = append(all, c)
		}
	}
	excused := readUncompared(t)
	for _, a := range applets() {
		switch n := count[a.Name]; {
		case n == 0 && !slices.Contains(excused, a.Name):
			t.Errorf("%s has no invocations: write %d, or why not in uncompared.txt", a.Name, leastInvocations)
		case n > 0 && slices.Contains(excused, a.Name):
			t.Errorf("%s has invocations: take it out of uncompared.txt", a.Name)
		case n > 0 && n < leastInvocations:
			t.Errorf("%s has %d invocations, %d are wanted", a.Name, n, leastInvocations)
		}
	}
	return all
}

// readUncompared reads the names of the commands that cannot be compared, with the reason.
func readUncompared(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/agree/uncompared.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		commands, why, ok := strings.Cut(line, " | ")
		if !ok || why == "" {
			t.Fatalf("uncompared.txt: %q: a row is COMMANDS | WHY", line)
		}
		names = append(names, strings.Fields(commands)...)
	}
	return names
}

// wholeLines are the lines that are neither blank nor comments; one in which a quote is open goes on in the next.
func wholeLines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		whole := ""
		for line := range strings.Lines(text) {
			if trimmed := strings.TrimSpace(line); whole == "" && (trimmed == "" || trimmed[0] == '#') {
				continue
			}
			whole += line
			if _, err := shell.Fields(whole, func(string) string { return "" }); err != nil && strings.Contains(err.Error(), "without closing quote") {
				continue
			}
			if !yield(strings.TrimSpace(whole)) {
				return
			}
			whole = ""
		}
		if whole != "" {
			yield(whole)
		}
	}
}

func parseInvocation(line string) (c invocation, err error) {
	c.line = line
	words := line
	if at := strings.LastIndex(line, " <"); at >= 0 && !strings.ContainsAny(line[at+2:], ` '"`) {
		words, c.stdin = line[:at], line[at+2:]
	}
	c.args, err = shell.Fields(words, func(string) string { return "" })
	if err == nil && len(c.args) == 0 {
		err = errors.New("there is no command")
	}
	return c, err
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
	theirs, err := c.runBusybox(t, fresh, busybox)
	if err != nil {
		return nil, fmt.Errorf("busybox: %w", err)
	}
	if found = c.differences(theirs, ours); len(found) == 0 {
		return nil, nil
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
		other := c.differences(gnu, ours)
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
	differ("stdout", brief(theirs.stdout), brief(ours.stdout))
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
	dir := filepath.Join(t.TempDir(), "w")
	if err := furnish(dir); err != nil {
		t.Fatal(err)
	}
	fresh, err := describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

// brief quotes a text; of a long one, the middle is left out and its sum is put there.
func brief(text string) string {
	if len(text) > 2000 {
		return fmt.Sprintf("%q ... %q, %d bytes, %x", text[:200], text[len(text)-200:], len(text), checksum(text))
	}
	return fmt.Sprintf("%q", text)
}

// runBusybox runs an invocation with busybox, which finds only busybox's commands.
func (c invocation) runBusybox(t *testing.T, fresh map[string]string, busybox string) (o outcome, err error) {
	dir, err := os.MkdirTemp("", "agree-")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "bin")
	if err := linkAll(busyboxCommands(), busybox, path); err != nil {
		return o, err
	}
	o, err = c.run(t, fresh, busybox, path)
	o.stdout = strings.ReplaceAll(o.stdout, path, linkDir)
	return o, err
}

// run runs an invocation in a folder of its own.
func (c invocation) run(t *testing.T, fresh map[string]string, program, path string) (o outcome, err error) {
	dir, err := os.MkdirTemp("", "agree-")
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
	err = cmd.Run()
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

// busyboxCommands are those that an invocation may run by itself, as xargs does.
func busyboxCommands() []string {
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

// difference is one that is known. In differences.txt it is a line:
//
//	sort | stdout code | -z.* | why
//
// that is: commands, what differs (stdout, stderr, code, files), a regular expression for all that follows the command's name,
// and the reason. Above the rows, # begins a comment.
type difference struct {
	names, what []string
	line        *regexp.Regexp
	why         string
}

func (d difference) String() string {
	return fmt.Sprintf("%s | %s | %s", strings.Join(d.names, " "), strings.Join(d.what, " "), d.line)
}

func (d difference) explains(f finding) bool {
	rest := strings.TrimSpace(strings.TrimPrefix(f.line, f.name))
	return slices.Contains(d.names, f.name) && slices.Contains(d.what, f.what) && d.line.MatchString(rest)
}

func readDifferences(t *testing.T) (all []difference) {
	t.Helper()
	text, err := os.ReadFile("testdata/agree/differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.Split(line, " | ")
		if len(parts) != 4 || parts[3] == "" {
			t.Fatalf("differences.txt: %q: a row is COMMANDS | WHAT | ARGUMENTS | WHY", line)
		}
		expression, err := regexp.Compile("^(?:" + parts[2] + ")$")
		if err != nil {
			t.Fatalf("differences.txt: %q: %v", line, err)
		}
		all = append(all, difference{strings.Fields(parts[0]), strings.Fields(parts[1]), expression, parts[3]})
	}
	return all
}
