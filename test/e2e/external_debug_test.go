// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/test/images"
)

// onDebian is a kit on a server of the test's own, on Debian's containerd.
func onDebian(t *testing.T) (*kit, *Server, *Containerd) {
	t.Helper()
	needBusybox(t)
	d := StartContainerd(t)
	d.Load(t, world(t))
	srv := own(t, ServerOptions{NoImages: true, Args: []string{"--container-runtime-endpoint", "unix://" + d.socket}})
	return inDefault(t, srv), srv, d
}

// execs lists what there is of image execs: on the runtime, and below the server's folder.
func (d *Containerd) execs(k *kit) (out []string) {
	k.t.Helper()
	c, err := cri.Dial(k.ctx(), "unix://"+d.socket)
	k.must(err)
	defer c.Close()
	labels := map[string]string{cri.LabelContainerType: cri.TypeExec}
	list, err := c.Runtime.ListContainers(k.ctx(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: labels}})
	k.must(err)
	for _, x := range list.GetContainers() {
		out = append(out, "container "+x.GetMetadata().GetName())
	}
	boxes, err := c.Runtime.ListPodSandbox(k.ctx(), &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: labels}})
	k.must(err)
	for _, x := range boxes.GetItems() {
		out = append(out, "sandbox "+x.GetMetadata().GetUid())
	}
	return append(out, k.folders()...)
}

// awaitNoExecs waits until nothing of any image exec is left. There is nothing to watch for that, so this polls.
func (d *Containerd) awaitNoExecs(k *kit) {
	k.t.Helper()
	for deadline := time.Now().Add(Timeout / 3); ; time.Sleep(20 * time.Millisecond) {
		left := d.execs(k)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("IX-05 left: %v", left)
		}
	}
}

// ctr runs containerd's own tool.
func (d *Containerd) ctr(t *testing.T, args ...string) string {
	t.Helper()
	out, err := d.tryCtr(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (d *Containerd) tryCtr(args ...string) (string, error) {
	out, err := exec.Command(filepath.Join(d.bin, "ctr"), append([]string{"--address", d.socket, "-n", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// TestExternalDebugShell: wherry debug on a containerd that somebody else runs (1.6): the toolbox without a registry (DC-01), its image
// safe from clearing up; the prompt, leaving, coming back to all that was shown (DC-07, EC-15, EC-16); the output and the code of
// programs that end at once (DC-03), every time.
func TestExternalDebugShell(t *testing.T) {
	t.Parallel()
	k, _, d := onDebian(t)
	k.up(`{metadata: {name: web}, spec: {hostNetwork: true, containers: [{name: main, image: tool, args: [sleep]}]}}`)
	if list := d.ctr(t, "images", "ls", "-q"); strings.Contains(list, debugask.ToolboxImage) {
		t.Errorf("the toolbox was there before anybody asked for it:\n%s", list)
	}
	c := k.shell(pty.Winsize{Rows: 33, Cols: 101}, "debug", "web")
	c.Await("# ")
	c.typed("cat /proc/1/comm; echo sum-$((40+2))\r")
	c.Await("tool")
	c.Await("sum-42")
	c.typed("until stty size | grep '33 101'; do sleep 0.05; done; echo size-$((1+1))\r")
	c.Await("size-2")
	c.typed("sh -c 'echo read$((1))y; exec sleep 1000'\r")
	c.Await("read1y")
	c.typed("\x03")
	c.typed("echo code-$?\r")
	c.Await("code-130")
	c.typed("\x10\x11")
	if code := c.code(); code != 0 {
		t.Errorf("DC-07 leaving ended with %d; it showed\n%s", code, c.Text())
	}
	k.Wait("web", "show that its debug container runs", func(p *corev1.Pod) bool { // this runtime is asked for it once a second
		return podspec.DebugStateOf(p, "debug").Phase == podspec.DebugRunning
	})
	first := k.shell(pty.Winsize{Rows: 20, Cols: 80}, "debug", "-c", "debug", "web")
	first.Await("sum-42")
	second := k.shell(pty.Winsize{Rows: 20, Cols: 80}, "debug", "-c", "debug", "web")
	second.Await("sum-42")
	second.typed("exit 6\r")
	for _, c := range []*Console{first, second} {
		if code := c.code(); code != 6 {
			t.Errorf("EC-15 a client ended with %d, want 6; it showed\n%s", code, c.Text())
		}
	}
	for i := range 5 {
		r := k.wherry(nil, "debug", "web", "-c", fmt.Sprintf("quick-%d", i), "--", "sh", "-c", "echo out; echo err >&2; exit 7").exits(7)
		if r.Out != "out\n" || !strings.Contains(r.Err, "err\n") {
			t.Errorf("EC-16 run %d said %q and %q", i, r.Out, r.Err)
		}
	}
	k.wherry(strings.NewReader("echo from a pipe; exit 3\n"), "debug", "web", "-c", "piped", "-m", "wherry.dev/toolbox").exits(3).Has("from a pipe")
	k.wherry(nil, "debug", "web", "-c", "none", "--", "no-such-command").exits(127)
	if list := d.ctr(t, "images", "ls", "name=="+debugask.ToolboxImage+":latest"); !strings.Contains(list, "io.cri-containerd.pinned=pinned") {
		t.Errorf("the toolbox is not pinned:\n%s", list)
	}
	if list := d.ctr(t, "images", "ls", "-q"); strings.Count(list, debugask.ToolboxImage) != 1 {
		t.Errorf("the toolbox's names:\n%s", list)
	}
	// Somebody removes it: it is brought again.
	d.ctr(t, "images", "rm", debugask.ToolboxImage+":latest")
	k.wherry(nil, "debug", "web", "-c", "again", "--", "true").exits(0)
}

// TestExternalImageExec: image exec and cp on Debian's containerd: what runs, what comes back of it, every container's files, those of
// the dead too, and nothing left (IX-01 to IX-06, IX-09, IX-12).
func TestExternalImageExec(t *testing.T) {
	t.Parallel()
	k, _, d := onDebian(t)
	k.up(`
metadata: {name: app}
spec:
  hostNetwork: true
  initContainers: [{name: first, command: [sh, -c, "echo from-init > /made"]}]
  containers:
  - name: main
    command: [sh, -c, "echo own > /own; echo 2 > /shared/main; echo said so; touch /tmp/up; IDLE"]
    readinessProbe: {exec: {command: [test, -e, /tmp/up]}, periodSeconds: 1, timeoutSeconds: 60}
    env: [{name: COLOR, value: red}]
    volumeMounts: [{name: v, mountPath: /shared}]
  - {name: tool, image: tool, args: [sleep]}
  volumes: [{name: v, emptyDir: {}}]
`)
	k.pod(`{metadata: {name: failed}, spec: {hostNetwork: true, restartPolicy: Never, containers: [{name: main, command: [sh, -c, "echo died > /why; echo last words; exit 4"]}]}}`)
	k.awaitLog("app", "main", "said so\n") // the runtime may be behind with what it reads
	before := facts(k.Get("app"))
	for name, way := range map[string]func(*imageExec){"WebSocket": func(*imageExec) {}, "SPDY": overSPDY} {
		t.Run(name, func(t *testing.T) {
			k := &kit{k.With(t), t}
			for range 5 {
				if out, errs, code := k.into("app", "echo out; echo err >&2; exit 42", way); out != "out\n" || errs != "err\n" || code != 42 {
					t.Errorf("IX-05 got %q, %q, code %d", out, errs, code)
				}
			}
			k.shows("app", "wc -c; echo end", "3000000\nend", way, func(x *imageExec) { x.stdin = bytes.NewReader(make([]byte, 3_000_000)) })
			if out, _, _ := k.into("app", "head -c 3000000 /dev/zero", way); len(out) != 3_000_000 {
				t.Errorf("%d bytes of 3000000 came", len(out))
			}
			if _, errs, code := k.into("app", "", way, func(x *imageExec) { x.command = []string{"nosuchprogram"} }); code != 127 {
				t.Errorf("a program that is not there: code %d, %q", code, errs)
			}
			if _, errs, code := k.into("app", "", way, func(x *imageExec) { x.command = []string{"/etc/passwd"} }); code != 126 {
				t.Errorf("a file that is no program: code %d, %q", code, errs)
			}
		})
	}
	k.shows("app", "cat /c/main/own /c/main/shared/main /c/first/made; test -x /c/tool/tool; cat /c/.wherry/main/log; grep COLOR /c/.wherry/main/env", "own\n2\nfrom-init\nsaid so\nCOLOR=red")
	if _, errs, code := k.into("app", "echo x > /c/main/x"); code == 0 || !strings.Contains(errs, "Read-only") {
		t.Errorf("IX-04 writing: code %d, %q", code, errs)
	}
	k.shows("app", "echo x > /c/main/written", "", writable)
	k.says("app", "main", "cat /written", "x")
	k.shows("app", "readlink /proc/1/ns/pid", k.sh("app", "main", "readlink /proc/self/ns/pid"), target("main"))
	k.pod(`{metadata: {name: crash}, spec: {hostNetwork: true, containers: [{name: main, command: [sh, -c, "echo died > /why; echo last words; exit 3"]}]}}`)
	k.WaitRestarts("crash", "main", 1) // what follows has the 20 s of the second back-off, from their beginning
	k.WaitWaiting("crash", "main", "CrashLoopBackOff")
	k.shows("crash", "cat /c/main/why /c/.wherry/main/log; grep exitCode /c/.wherry/main/status.json", "died\nlast words\n  \"exitCode\": 3,")
	k.WaitPhase("failed", corev1.PodFailed)
	k.shows("failed", "cat /c/main/why /c/.wherry/main/log; echo x > /c/main/new; grep exitCode /c/.wherry/main/status.json", "died\nlast words\n  \"exitCode\": 4,", writable)
	k.wherry(nil, "debug", "failed", "--", "cat", "/c/main/why").exits(0).Has("died")
	k.wherry(nil, "exec", "app", "-m", images.BusyboxRef, "--", "cat", "/c/main/own").exits(0).Has("own")

	dir := t.TempDir()
	text := strings.Repeat("beta", 1<<18)
	k.must(os.WriteFile(filepath.Join(dir, "in"), []byte(text), 0o640))
	k.wherry(nil, "cp", filepath.Join(dir, "in"), "app:/copied").exits(0)
	k.wherry(nil, "cp", "app:/copied", filepath.Join(dir, "out")).exits(0)
	if got, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(got) != text {
		t.Errorf("DC-16 %d bytes came back of %d (%v)", len(got), len(text), err)
	}
	k.wherry(nil, "cp", "failed:/why", filepath.Join(dir, "why")).exits(0)
	if after := facts(k.Get("app")); after != before {
		t.Errorf("IX-06 the pod is\n%s\nand was\n%s", after, before)
	}
	if left := d.execs(k); len(left) > 0 {
		t.Errorf("IX-05 left: %v", left)
	}
	t.Run("the client goes", func(t *testing.T) {
		k := &kit{k.With(t), t}
		for _, pod := range []string{"app", "failed"} {
			ctx, cancel := context.WithCancel(k.ctx())
			if _, err := k.start(pod, imageExec{image: images.BusyboxRef, command: []string{"sh", "-c", "echo begun; exec sleep 1000"}, stdout: &notice{text: "begun", then: cancel}, ctx: ctx}); err == nil {
				t.Error("sleep 1000 ended")
			}
			d.awaitNoExecs(k)
		}
	})
	t.Run("the pod goes", func(t *testing.T) {
		k := &kit{k.With(t), t}
		pod := k.Get("app")
		out := &notice{text: "begun", then: func() { k.Delete("app") }}
		if code, err := k.start("app", imageExec{image: images.BusyboxRef, command: []string{"sh", "-c", "echo begun; exec sleep 1000"}, stdout: out, ctx: k.ctx()}); err == nil && code != 137 {
			t.Errorf("code %d", code)
		}
		k.must(k.awaitGone(k.ctx(), "pods", "default", "app"))
		d.awaitNoExecs(k)
		for _, look := range []func(...string) ([]string, error){mountsWith, processesWith, cgroupsWith} {
			found, err := look(append(containerIDs(pod), string(pod.UID))...)
			k.must(err)
			if len(found) > 0 {
				t.Errorf("PL-10 left: %v", found)
			}
		}
	})
}

// TestExternalOutputKept: EC-11, EC-16: a debug container's output is whole, in its log and for who attaches, though the server and then
// the runtime are killed and started again while it speaks; an image exec that a killed server was at is taken away (IX-05).
func TestExternalOutputKept(t *testing.T) {
	t.Parallel()
	k, srv, d := onDebian(t)
	k.up(`{metadata: {name: web}, spec: {hostNetwork: true, containers: [{name: main, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /go}]}], volumes: [{name: v, emptyDir: {}}]}}`)
	count := Sh("i=0; while :; do i=$((i+1)); echo line $i; test -e /proc/1/root/go/stop && break; sleep 0.01; done; exit 9")
	k.addDebug("web", debugger("counter", "main", count))
	k.waitDebug("web", "counter", "run", isRunning)
	k.awaitLog("web", "counter", "line 20\n")

	begun := make(chan struct{})
	out := &notice{text: "begun", then: func() { close(begun) }}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = k.start("web", imageExec{image: images.BusyboxRef, command: []string{"sh", "-c", "echo begun; exec sleep 1000"}, stdout: out, ctx: k.ctx()})
		out.once.Do(func() { close(begun) })
	}()
	<-begun
	srv.Kill()
	<-ended
	k.must(srv.Start(context.Background()))
	if left := d.execs(k); len(left) > 0 {
		t.Errorf("IX-05 left after the next start: %v", left)
	}
	k.must(d.cmd.Process.Signal(syscall.SIGKILL))
	_ = d.cmd.Wait()
	d.Run(t)
	// By the node's way: the server may not have found the runtime again.
	pod := k.Get("web")
	k.must(os.WriteFile(filepath.Join(k.DataDir, "pods", string(pod.UID), "volumes/kubernetes.io~empty-dir/v/stop"), nil, 0o644))
	end := k.waitDebug("web", "counter", "ended", hasEnded).State.Terminated
	if end.ExitCode != 9 {
		t.Errorf("it ended as %+v", end)
	}
	whole := func(what, text string) {
		t.Helper()
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		for i, l := range lines {
			if l != fmt.Sprintf("line %d", i+1) {
				t.Errorf("EC-16 %s: line %d of %d is %q", what, i+1, len(lines), l)
				return
			}
		}
		if len(lines) < 50 {
			t.Errorf("%s has %d lines only", what, len(lines))
		}
	}
	whole("the log", k.log("web", "counter"))
	whole("what a later client gets", k.Kubectl("attach", "web", "-c", "counter").Out)
}
