// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/test/images"
)

// wherry runs such a command to its end.
func (s *Space) wherry(in io.Reader, args ...string) Result {
	s.T.Helper()
	cmd := s.command(args...)
	defer cmd.cancel()
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &errs
	code, err := exitCode(cmd.Run())
	if err != nil {
		s.T.Fatalf("%s: %v\n%s", cmd.line, err, errs.String())
	}
	return Result{T: s.T, Line: cmd.line, Out: out.String(), Err: errs.String(), Code: code}
}

// shell opens `wherry ARGS` on a terminal.
func (s *Space) shell(size pty.Winsize, args ...string) *Console {
	s.T.Helper()
	return s.onTerminal(s.command(args...), size)
}

// TestWherryDebugShell: a shell in a pod of one static program, by name of the pod alone: no registry, the pod's one container as
// the target (DC-01, DC-02, DC-04, DC-15); size and Ctrl-C reach it; Ctrl-P Ctrl-Q leaves it running; back by name, with what was
// shown before (DC-07, EC-16); two clients share it (EC-15); its exit code is the command's.
func TestWherryDebugShell(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep")))
	before := s.WaitReady("web")
	c := s.shell(pty.Winsize{Rows: 33, Cols: 101}, "debug", "web")
	c.Await("# ")
	c.typed("cat /proc/1/comm; echo sum-$((40+2))\r")
	c.Await("tool")
	c.Await("sum-42")
	c.typed("until stty size | grep '33 101'; do sleep 0.05; done; echo size-$((1+1))\r")
	c.Await("size-2")
	if err := pty.Setsize(c.tty, &pty.Winsize{Rows: 44, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	c.typed("until stty size | grep '44 77'; do sleep 0.05; done; echo size-$((1+2))\r")
	c.Await("size-3")
	c.typed("sh -c 'echo read$((1))y; exec sleep 1000'\r")
	c.Await("read1y")
	c.typed("\x03")
	c.typed("echo code-$?\r")
	c.Await("code-130")
	c.typed("\x10\x11")
	if code := c.code(); code != 0 {
		t.Errorf("DC-07 leaving ended with %d; it showed\n%s", code, c.Text())
	}
	c.Await("to return: wherry debug")
	s.waitDebug("web", "debug", "run", hasRun)
	first := s.shell(pty.Winsize{Rows: 20, Cols: 80}, "debug", "-c", "debug", "web")
	first.Await("sum-42") // what it said before
	second := s.shell(pty.Winsize{Rows: 20, Cols: 80}, "debug", "-c", "debug", "web")
	second.Await("sum-42")
	first.typed("echo both-$((3+4))\r")
	first.Await("both-7")
	second.Await("both-7")
	second.typed("exit 6\r")
	for _, c := range []*Console{first, second} {
		if code := c.code(); code != 6 {
			t.Errorf("EC-15 a client ended with %d, want 6; it showed\n%s", code, c.Text())
		}
	}
	if a, b := facts(before), facts(s.Get("web")); a != b {
		t.Errorf("EC-28 the pod was\n%s\nand is\n%s", a, b)
	}
}

func hasRun(c *corev1.ContainerStatus) bool { return c.State.Running != nil }

// TestWherryDebugCommands: names and their re-use, lists, stop, records; one message and one exit code for what cannot be (DC-01,
// DC-05, DC-06, DC-08, DC-11).
func TestWherryDebugCommands(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("web")
	s.wherry(nil, "debug", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7").exits(7).Has("out")
	s.wherry(strings.NewReader("echo from a pipe; exit 3\n"), "debug", "web").exits(3).Has("from a pipe")
	status := s.waitDebug("web", "debug", "have ended twice", func(c *corev1.ContainerStatus) bool { return hasEnded(c) && c.RestartCount == 1 })
	if last := status.LastTerminationState.Terminated; last == nil || last.ExitCode != 7 {
		t.Errorf("DC-06 the earlier run is %+v", status.LastTerminationState)
	}
	long := s.command("debug", "web", "--rm", "-q", "--", "sleep", "1000").StartProcess()
	s.waitDebug("web", "debug", "run", hasRun)
	s.wherry(nil, "debug", "web", "-c", "debug", "-m", "wherry.dev/toolbox", "--", "true").exits(1)
	s.wherry(nil, "debug", "web", "-c", "main", "--", "true").exits(1)
	s.wherry(nil, "debug", "web", "--", "true").exits(0) // debug-2
	s.wherry(nil, "debug", "ls", "web").exits(0).Has("debug ", "debug-2", "Running", "Exited (0)", "wherry.dev/toolbox")
	s.wherry(nil, "debug", "stop", "web", "debug").exits(0).Has("debug container debug of pod web stopped")
	long.Wait()
	s.wherry(nil, "debug", "stop", "web", "debug").exits(1)
	s.wherry(nil, "debug", "stop", "web", "nobody").exits(1)
	history := s.wherry(nil, "debug", "history", "web", "-o", "json").exits(0)
	var list debugrun.DebugRunList
	if err := json.Unmarshal([]byte(history.Out), &list); err != nil {
		t.Fatal(err)
	}
	ends := map[string]int{}
	for _, r := range list.Items {
		if r.Spec.User == "" || r.Spec.Image != debugask.ToolboxImage || r.Spec.Pod.Name != "web" || r.Spec.Target != "main" {
			t.Errorf("DC-06 a record is %+v", r.Spec)
		}
		if r.Status.ExitCode != nil {
			ends[fmt.Sprintf("%s %d", r.Spec.Container, *r.Status.ExitCode)]++
		}
	}
	if len(list.Items) != 4 || ends["debug 7"] != 1 || ends["debug 3"] != 1 || ends["debug-2 0"] != 1 {
		t.Errorf("DC-06 there are %d records, with the ends %v", len(list.Items), ends)
	}
	pod := s.Get("web")
	s.Delete("web")
	s.WaitGone(pod)
	s.wherry(nil, "debug", "history", "web").exits(0).Has("WHEN", "debug-2", debugask.ToolboxImage)
}

// TestWherryDebugRefusals: what cannot be is one message at once, and the right exit code (PL-15).
func TestWherryDebugRefusals(t *testing.T) {
	t.Parallel()
	s := shared(t)
	user := NewPod("user", Tool("sleep"))
	user.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1000))}
	s.Create(user)
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("user")
	s.WaitReady("web")
	for name, c := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"no such pod":          {[]string{"debug", "nobody"}, 1, []string{"nobody", "not found"}},
		"no such target":       {[]string{"debug", "web", "--target", "x"}, 1, []string{"x"}},
		"no such profile":      {[]string{"debug", "web", "--profile", "x"}, 2, []string{"choose one of"}},
		"bad image name":       {[]string{"debug", "web", "-m", "UPPER:x:y", "-c", "b1"}, 1, []string{"UPPER"}},
		"image not to be had":  {[]string{"debug", "web", "-m", "127.0.0.1:1/nothing:1", "-c", "b2"}, 1, []string{"ErrImagePull", "127.0.0.1:1"}},
		"no such command":      {[]string{"debug", "web", "-c", "b3", "--", "no-such-command"}, 127, []string{"no-such-command"}},
		"not executable":       {[]string{"debug", "web", "-c", "b4", "--", "/etc/passwd"}, 126, []string{"/etc/passwd"}},
		"no pod":               {[]string{"debug"}, 2, []string{"no pod given"}},
		"command without --":   {[]string{"debug", "web", "ls"}, 2, []string{"--"}},
		"exec without command": {[]string{"exec", "web"}, 2, []string{"no command given"}},
		"exec, no command":     {[]string{"exec", "web", "-m", debugask.ToolboxImage, "--", "no-such-command"}, 127, []string{"no-such-command"}},
		"exec, no image":       {[]string{"exec", "web", "-m", "127.0.0.1:1/nothing:1"}, 1, []string{"127.0.0.1:1"}},
		"plain exec":           {[]string{"exec", "web", "--", "no-such-command"}, 127, []string{"no-such-command"}},
		"must not be root":     {[]string{"debug", "user", "-m", images.BusyboxRef, "-c", "b5", "--", "true"}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.With(t).wherry(nil, c.args...).exits(c.code)
			for _, text := range c.says {
				if !strings.Contains(r.Err, text) {
					t.Errorf("%s: its message lacks %q: %s", r.Line, text, r.Err)
				}
			}
			if n := strings.Count(r.Err, "error:"); c.code != 0 && n > 1 {
				t.Errorf("%s: %d messages, want one: %s", r.Line, n, r.Err)
			}
		})
	}
}

// TestWherryDebugDead: a shell beside the dead: files, environment, evidence; also when the container is started again meanwhile
// (IX-09).
func TestWherryDebugDead(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	crash := NewPod("crash", Sh("mkdir -p /data; echo state >/data/file; echo last words >&2; exit 3"))
	crash.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: "prod"}}
	s.Create(crash)
	over := NewPod("over", Sh("mkdir -p /data; echo state >/data/file; exit 4"))
	over.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.Create(over)
	s.WaitPhase("over", corev1.PodFailed)
	s.Wait("crash", "be in a crash loop", func(p *corev1.Pod) bool {
		c := Status(p, "main")
		return c != nil && c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
	})
	for _, name := range []string{"crash", "over"} {
		s.wherry(nil, "debug", name, "--", "cat", "/c/main/data/file").exits(0).Has("state")
		s.wherry(nil, "debug", name, "--", "cat", "/c/.wherry/main/status.json").exits(0).Has(`"exitCode": `)
		to := filepath.Join(t.TempDir(), "file")
		s.wherry(nil, "cp", name+":/data/file", to).exits(0)
		if text, err := os.ReadFile(to); err != nil || string(text) != "state\n" {
			t.Errorf("IX-09 copied from %s: %q, %v", name, text, err)
		}
	}
	s.wherry(nil, "debug", "crash", "--", "sh", "-c", "cat /c/.wherry/main/env /c/.wherry/main/log").exits(0).Has("MODE=prod", "last words")
	c := s.shell(pty.Winsize{Rows: 20, Cols: 120}, "debug", "crash")
	c.Await("exit code 3")
	c.Await("# ")
	restarts := Status(s.Get("crash"), "main").RestartCount
	s.Wait("crash", "be started again", func(p *corev1.Pod) bool { return Status(p, "main").RestartCount > restarts })
	c.typed("cat /c/main/data/file; echo alive-$((1+1))\r")
	c.Await("state")
	c.Await("alive-2")
	c.typed("exit\r")
	if code := c.code(); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, c.Text())
	}
}

// TestWherryCp: files and folders into and out of a container without tar, by the names that cp gives them (DC-16, IX-04).
func TestWherryCp(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("web")
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	if err := os.MkdirAll(filepath.Join(tree, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a": "alpha", "sub/b": strings.Repeat("beta", 1<<20)} {
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	same := func(file, want string) {
		t.Helper()
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(text) != want {
			t.Errorf("%s: %d bytes, %v; want %d", file, len(text), err, len(want))
		}
	}
	s.wherry(nil, "cp", tree, "web:/new").exits(0)      // takes the name
	s.wherry(nil, "cp", tree, "web:/new").exits(0)      // goes into it
	s.wherry(nil, "cp", tree+"/a", "web:/new").exits(0) // too
	s.wherry(nil, "cp", tree+"/a", "web:/new/renamed").exits(0)
	s.wherry(nil, "cp", "web:/new", filepath.Join(dir, "out")).exits(0)
	same("out/a", "alpha")
	same("out/renamed", "alpha")
	same("out/tree/sub/b", strings.Repeat("beta", 1<<20))
	s.wherry(nil, "cp", "web:/new/sub/b", dir).exits(0)
	same("b", strings.Repeat("beta", 1<<20))
	s.wherry(nil, "cp", "web:/none", dir).exits(1).Says("container main of pod web: /none does not exist")
	if err := os.Mkdir(filepath.Join(dir, "matches"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.wherry(nil, "cp", "web:/new/[ar]*", filepath.Join(dir, "matches")).exits(0)
	same("matches/a", "alpha")
	same("matches/renamed", "alpha")
	archive := s.wherry(nil, "cp", "web:/new/sub", "-").exits(0).Out
	s.wherry(strings.NewReader(archive), "cp", "-", "web:/tmp").exits(0)
	s.wherry(nil, "cp", "web:/tmp/sub/b", filepath.Join(dir, "through")).exits(0)
	same("through", strings.Repeat("beta", 1<<20))
	s.wherry(strings.NewReader(strings.Replace(archive[:len(archive)/2], "sub/b", "sub/c", 1)), "cp", "-", "web:/tmp").exits(1)
	s.wherry(nil, "exec", "web", "-m", "wherry.dev/toolbox", "--", "ls", "-A", "/c/main/tmp/sub").exits(0).Is("b")
	s.wherry(nil, "cp", tree, "web:/none/").exits(1)
	s.wherry(nil, "cp", filepath.Join(dir, "none"), "web:/").exits(1)
	s.wherry(nil, "cp", "web:/a", "web:/b").exits(2)
	s.wherry(nil, "cp", "-c", "x", "web:/a", dir).exits(1)
}

// TestWherryExec: the container is kubectl's default, and where a command cannot be run the user is told what to do; so it is after a copy
// into a container that does not run.
func TestWherryExec(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("two", Named("app", Tool("sleep")), Named("helper", Tool("sleep"))))
	s.WaitReady("two")
	s.wherry(nil, "exec", "two", "--", "no-such").exits(127).Says(`Defaulted container "app" out of: app, helper`,
		`error: exec: "no-such": executable file not found in $PATH`, "wherry debug --target app two")
	s.Create(Never("over", Tool("exit", "0")))
	s.WaitPhase("over", corev1.PodSucceeded)
	if r := s.wherry(nil, "exec", "over", "--", "true"); r.Code == 0 || !strings.Contains(r.Err, "wherry debug over") && !strings.Contains(r.Err, "wherry debug --target main over") {
		t.Errorf("exit code %d: %s", r.Code, r.Err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.wherry(nil, "cp", file, "over:/tmp/file").exits(0).Says("container main of pod over is not running")
	if strings.Contains(r.Err, "sandbox") {
		t.Errorf("it speaks of sandboxes: %s", r.Err)
	}
}

// TestDebugRace: of twenty clients that add a debug container of one name one gets it, and of twenty names all get in (DC-05, EC-08).
func TestDebugRace(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("web")
	codes := func(args func(i int) []string) map[int]int {
		var mu sync.Mutex
		var wg sync.WaitGroup
		got := map[int]int{}
		for i := range 20 {
			wg.Go(func() {
				r := s.wherry(nil, args(i)...)
				mu.Lock()
				defer mu.Unlock()
				got[r.Code]++
			})
		}
		wg.Wait()
		return got
	}
	// It runs on until all have tried: a name whose container has ended may be used again.
	if got := codes(func(int) []string { return []string{"debug", "web", "-c", "same", "--ttl", "60s", "--", "sleep", "8"} }); got[0] != 1 || got[1] != 19 {
		t.Errorf("DC-05 the exit codes of one name: %v, want one 0 and nineteen 1", got)
	}
	if got := codes(func(i int) []string { return []string{"debug", "web", "-c", fmt.Sprintf("other-%d", i), "--", "true"} }); got[0] != 20 {
		t.Errorf("EC-08 the exit codes of twenty names: %v, want twenty 0", got)
	}
	if n := len(s.Get("web").Spec.EphemeralContainers); n != 21 {
		t.Errorf("EC-08 there are %d debug containers, want 21", n)
	}
}
