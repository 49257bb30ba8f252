// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/test/images"
)

// imageExec is one image exec, by the node's own route.
type imageExec struct {
	image, container string
	writable, spdy   bool
	command          []string
	stdin            io.Reader
	stdout, stderr   io.Writer // stderr stays nil with a terminal
	sizes            remotecommand.TerminalSizeQueue
	tty              bool
	ctx              context.Context
}

// start runs it and returns how it ended: an exit code, or an error that is none.
func (k *kit) start(pod string, x imageExec) (int, error) {
	k.t.Helper()
	q := url.Values{"image": {x.image}, "command": x.command, "output": {"1"}}
	if x.container != "" {
		q.Set("container", x.container)
	}
	for name, on := range map[string]bool{"writable": x.writable, "input": x.stdin != nil, "error": x.stderr != nil, "tty": x.tty} {
		if on {
			q.Set(name, "1")
		}
	}
	config := k.node()
	u := &url.URL{Scheme: "https", Host: config.Host, Path: path.Join("/imageExec", k.Namespace, pod), RawQuery: q.Encode()}
	var e remotecommand.Executor
	var err error
	if x.spdy {
		e, err = remotecommand.NewSPDYExecutor(config, http.MethodPost, u)
	} else {
		e, err = remotecommand.NewWebSocketExecutor(config, http.MethodGet, u.String())
	}
	k.must(err)
	err = e.StreamWithContext(x.ctx, remotecommand.StreamOptions{Stdin: x.stdin, Stdout: x.stdout, Stderr: x.stderr, Tty: x.tty, TerminalSizeQueue: x.sizes})
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) {
		return exit.Code, nil
	}
	return 0, err
}

// node is how the node's own API is reached, by the administrator: it listens where the test's server does.
func (k *kit) node() *rest.Config {
	k.t.Helper()
	n, err := k.Client.CoreV1().Nodes().Get(k.ctx(), k.NodeName, metav1.GetOptions{})
	k.must(err)
	c := rest.CopyConfig(k.Config)
	host := "127.0.0.1"
	if slices.Contains(k.opts.Args, "--bind-address") {
		host = k.NodeIP
	}
	c.Host = net.JoinHostPort(host, strconv.Itoa(int(n.Status.DaemonEndpoints.KubeletEndpoint.Port)))
	return c
}

// into runs a busybox shell's script in a pod and gives what it said.
func (k *kit) into(pod, script string, change ...func(*imageExec)) (stdout, stderr string, code int) {
	k.t.Helper()
	var out, errs bytes.Buffer
	x := imageExec{image: images.BusyboxRef, command: []string{"sh", "-c", script}, stdout: &out, stderr: &errs, ctx: k.ctx()}
	for _, f := range change {
		f(&x)
	}
	code, err := k.start(pod, x)
	if err != nil {
		k.t.Fatalf("image exec in %s: %s\n%v\n%s", pod, script, err, errs.String())
	}
	return out.String(), errs.String(), code
}

// shows checks the output of a script run by image exec.
func (k *kit) shows(pod, script, want string, change ...func(*imageExec)) {
	k.t.Helper()
	out, errs, code := k.into(pod, script, change...)
	if got := strings.TrimRight(out, "\n"); got != want || code != 0 {
		k.t.Errorf("image exec in %s: %s\ngot  %q, code %d, stderr %q\nwant %q", pod, script, got, code, errs, want)
	}
}

func writable(x *imageExec) { x.writable = true }

func overSPDY(x *imageExec) { x.spdy = true }

func target(name string) func(*imageExec) { return func(x *imageExec) { x.container = name } }

// remains lists what is on the node of any image exec: containers, sandboxes, mounts and folders.
func (k *kit) remains() (out []string) {
	k.t.Helper()
	c, err := cri.Dial(k.Context(), "unix://"+filepath.Join(k.DataDir, "cri.sock"))
	k.must(err)
	defer c.Close()
	labels := map[string]string{cri.LabelContainerType: string(cri.TypeExec)}
	list, err := c.Runtime.ListContainers(k.Context(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: labels}})
	k.must(err)
	for _, x := range list.GetContainers() {
		if x.GetLabels()[cri.LabelPodNamespace] == k.Namespace {
			out = append(out, "container "+x.GetMetadata().GetName())
		}
	}
	boxes, err := c.Runtime.ListPodSandbox(k.Context(), &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: labels}})
	k.must(err)
	for _, x := range boxes.GetItems() {
		if x.GetMetadata().GetNamespace() == k.Namespace {
			out = append(out, "sandbox "+x.GetMetadata().GetUid())
		}
	}
	return out
}

// folders lists the folders and mounts of image execs: of the whole server, so for tests that have one of their own.
func (k *kit) folders() (out []string) {
	k.t.Helper()
	base := filepath.Join(k.DataDir, "imageexec")
	entries, err := os.ReadDir(base)
	k.must(err)
	for _, e := range entries {
		out = append(out, "folder "+e.Name())
	}
	mounts, err := mountsWith(base + "/")
	k.must(err)
	return append(out, mounts...)
}

// awaitNothing waits until nothing of any image exec is on the node. Its client does not hear of that, and there is no API to
// watch, so this polls.
func (k *kit) awaitNothing() {
	k.t.Helper()
	deadline := time.Now().Add(Timeout / 3)
	for {
		left := append(k.remains(), k.folders()...)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("left: %v", left)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestImageExecFiles: IX-04: every container's files are under /c, with the volumes in their places, read-only unless they are
// to be writable; IX-06: the pod does not notice.
func TestImageExecFiles(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.configMap("settings", map[string]string{"color": "blue"})
	k.up(`
metadata: {name: app}
spec:
  initContainers:
  - {name: first, command: [sh, -c, "echo from-init > /made; echo 1 > /shared/init"], volumeMounts: [{name: shared, mountPath: /shared}]}
  - {name: side, restartPolicy: Always, command: [sh, -c, "IDLE"]}
  containers:
  - name: main
    command: [sh, -c, "echo secret > /root/own; chmod 600 /root/own; mkdir -p /shared/sub; echo 2 > /shared/main; ln -s /etc /lib; echo said so; IDLE"]
    env: [{name: COLOR, value: red}]
    volumeMounts:
    - {name: shared, mountPath: /shared}
    - {name: config, mountPath: /conf}
    - {name: fixed, mountPath: /fixed, readOnly: true}
  - name: second
    command: [sh, -c, "echo 3 > /part/file; IDLE"]
    securityContext: {runAsUser: 1000}
    volumeMounts: [{name: open, mountPath: /part, subPath: part}]
  - {name: tool, image: tool, args: [sleep]}
  volumes:
  - {name: shared, emptyDir: {}}
  - {name: open, emptyDir: {}}
  - {name: fixed, emptyDir: {}}
  - {name: config, configMap: {name: settings}}
`)
	k.sh("app", "second", "test -e /part/file") // it has got so far
	before := k.Get("app")

	k.shows("app", "ls /c; ls -A /c | grep wherry", "first\nmain\nsecond\nside\ntool\n.wherry")
	k.shows("app", "cat /c/main/root/own; cat /c/first/made", "secret\nfrom-init")
	k.shows("app", "cat /c/main/shared/init /c/main/shared/main /c/first/shared/main", "1\n2\n2")
	k.shows("app", "cat /c/main/conf/color", "blue")
	k.shows("app", "cat /c/second/part/file; ls /c/second/part", "3\nfile")
	k.shows("app", "test -x /c/tool/tool && /c/tool/tool env IMAGE_SAYS", "IMAGE_SAYS=hello", overSPDY)
	k.shows("app", "grep -c app /c/main/etc/hosts /etc/hosts", "/c/main/etc/hosts:1\n/etc/hosts:1")
	t.Run("read-only", func(t *testing.T) {
		for _, path := range []string{"/c/main/x", "/c/main/shared/x", "/c/main/conf/x", "/c/second/part/x", "/c/x", "/c/.wherry/x"} {
			if out, errs, code := k.into("app", "echo x > "+path); code == 0 || !strings.Contains(errs, "Read-only") {
				t.Errorf("writing %s: code %d, %q %q", path, code, out, errs)
			}
		}
	})
	t.Run("writable", func(t *testing.T) {
		k := &kit{k.With(t), t}
		k.shows("app", "echo x > /c/main/written; echo y > /c/main/shared/written", "", writable)
		k.says("app", "main", "cat /written /shared/written", "x\ny")
		for _, path := range []string{"/c/main/conf/x", "/c/main/fixed/x", "/c/x", "/c/.wherry/x"} {
			if _, errs, code := k.into("app", "echo x > "+path, writable); code == 0 || !strings.Contains(errs, "Read-only") {
				t.Errorf("writing %s: code %d, %q", path, code, errs)
			}
		}
	})
	t.Run("evidence", func(t *testing.T) {
		k := &kit{k.With(t), t}
		k.shows("app", "grep COLOR /c/.wherry/main/env; cat /c/.wherry/main/log", "COLOR=red\nsaid so")
		k.shows("app", `grep -o '"state": "[a-z]*"' /c/.wherry/main/status.json; grep exitCode /c/.wherry/first/status.json`, "\"state\": \"running\"\n  \"exitCode\": 0,")
		k.shows("app", "stat -c %a:%u /c/.wherry/main/env", "600:0")
	})
	t.Run("no trace in the pod", func(t *testing.T) {
		after := k.Get("app")
		if !reflect.DeepEqual(ofWorker(before), ofWorker(after)) {
			t.Errorf("the pod's status changed:\n%s", diff.Diff(before.Status, after.Status))
		}
		if left := k.remains(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// ofWorker is a pod's status without what others write into it.
func ofWorker(p *corev1.Pod) corev1.PodStatus {
	s := *p.Status.DeepCopy()
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == "wherry.dev/Tainted" })
	return s
}

// TestImageExecPaths: IX-04: a container's links lead nowhere but within its own files, wherever they point.
func TestImageExecPaths(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`
metadata: {name: links}
spec:
  containers:
  - {name: main, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /lib/data}]}
  volumes: [{name: v, emptyDir: {}}]
`)
	k.sh("links", "main", "echo inside > /lib/data/file; mv /lib /elsewhere; ln -s /bin /lib; mkdir /bin/data; ln -s /etc /here")
	// The command's own /bin is as its image has it: nothing of the container's was mounted there.
	k.shows("links", "cat /c/main/bin/data/file; test ! -e /bin/data && readlink /c/main/here", "inside\n/etc")
}

// TestImageExecCommand: IX-01, IX-03, IX-05: what runs, where, and what comes back of it.
func TestImageExecCommand(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`{metadata: {name: app}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}, {name: other, image: tool, args: [sleep]}]}}`)
	k.up(`{metadata: {name: shared}, spec: {shareProcessNamespace: true, containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	for name, way := range map[string]func(*imageExec){"WebSocket": func(*imageExec) {}, "SPDY": overSPDY} {
		t.Run(name, func(t *testing.T) {
			k := &kit{k.With(t), t}
			if out, errs, code := k.into("app", "echo out; echo err >&2; exit 42", way); out != "out\n" || errs != "err\n" || code != 42 {
				t.Errorf("got %q, %q, code %d", out, errs, code)
			}
			k.shows("app", "wc -c; echo end", "3000000\nend", way, func(x *imageExec) { x.stdin = bytes.NewReader(make([]byte, 3_000_000)) })
			if out, _, _ := k.into("app", "head -c 3000000 /dev/zero", way); len(out) != 3_000_000 {
				t.Errorf("%d bytes of 3000000 came", len(out))
			}
			_, errs, code := k.into("app", "", way, func(x *imageExec) { x.command = []string{"nosuchprogram"} })
			if code != 127 || !strings.Contains(errs, "nosuchprogram") {
				t.Errorf("a program that is not there: code %d, %q", code, errs)
			}
			_, errs, code = k.into("app", "", way, func(x *imageExec) { x.command = []string{"/etc/passwd"} })
			if code != 126 || !strings.Contains(errs, "/etc/passwd") {
				t.Errorf("a file that is no program: code %d, %q", code, errs)
			}
		})
	}
	t.Run("image's own command", func(t *testing.T) {
		k := &kit{k.With(t), t}
		k.shows("app", "", "IMAGE_SAYS=hello", func(x *imageExec) { x.image, x.command = images.ToolRef, []string{"/tool", "env", "IMAGE_SAYS"} })
	})
	t.Run("namespaces", func(t *testing.T) {
		k := &kit{k.With(t), t}
		links := "for i in net ipc uts; do readlink /proc/self/ns/$i; done"
		k.shows("app", links, k.sh("app", "main", links))
		k.shows("app", "readlink /proc/1/ns/pid", k.sh("app", "main", "readlink /proc/self/ns/pid"), target("main"))
		k.shows("app", "echo $$", "1") // one of its own
		k.shows("shared", "readlink /proc/self/ns/pid", k.sh("shared", "main", "readlink /proc/self/ns/pid"))
	})
}

// TestImageExecTerminal: IX-05: a terminal, its size, its keys and the end of its input.
func TestImageExecTerminal(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`{metadata: {name: app}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	for name, spdy := range map[string]bool{"WebSocket": false, "SPDY": true} {
		t.Run(name, func(t *testing.T) {
			k := &kit{k.With(t), t}
			in, typed := io.Pipe()
			shown, out := io.Pipe()
			sizes := make(chan remotecommand.TerminalSize, 1)
			sizes <- remotecommand.TerminalSize{Width: 101, Height: 33}
			defer close(sizes)
			ended := make(chan int, 1)
			go func() {
				code, err := k.start("app", imageExec{image: images.BusyboxRef, command: []string{"sh"}, tty: true, spdy: spdy, stdin: in, stdout: out,
					sizes: sizeChan(sizes), ctx: k.ctx()})
				if err != nil {
					t.Error(err)
				}
				_ = out.Close()
				ended <- code
			}()
			screen := &expecter{t: t, from: shown}
			say := func(text, want string) {
				t.Helper()
				_, err := io.WriteString(typed, text)
				k.must(err)
				screen.until(want)
			}
			say("tty; until stty size | grep 101; do sleep 0.1; done\n", "33 101\r\n")
			sizes <- remotecommand.TerminalSize{Width: 77, Height: 22}
			say("until stty size | grep 77; do sleep 0.1; done\n", "22 77\r\n")
			// Said by the job itself: so it is the one in the foreground.
			say("sh -c 'echo begin $((40+1)); exec sleep 1000'\n", "begin 41")
			say("\x03", "# ") // the shell is back
			say("echo still $((40+2))\n", "still 42")
			say("exit 7\n", "exit 7")
			go func() { _, _ = io.Copy(io.Discard, shown) }() // what else comes must not hold it up
			if code := <-ended; code != 7 {
				t.Errorf("code %d", code)
			}
		})
	}
}

type sizeChan <-chan remotecommand.TerminalSize

// Next is part of remotecommand.TerminalSizeQueue.
func (c sizeChan) Next() *remotecommand.TerminalSize {
	if size, more := <-c; more {
		return &size
	}
	return nil
}

// expecter reads what a terminal shows.
type expecter struct {
	t    *testing.T
	from io.Reader
	seen string
}

// until reads until the text comes, and forgets all up to it.
func (e *expecter) until(text string) {
	e.t.Helper()
	buf := make([]byte, 4096)
	for !strings.Contains(e.seen, text) {
		n, err := e.from.Read(buf)
		e.seen += string(buf[:n])
		if err != nil {
			e.t.Fatalf("the terminal ended (%v) without %q: %q", err, text, e.seen)
		}
	}
	_, e.seen, _ = strings.Cut(e.seen, text)
}

// TestImageExecErrors: what cannot be done is answered at once, in words, before there are streams, and leaves nothing (IX-02,
// IX-10, IX-12).
func TestImageExecErrors(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`{metadata: {name: app}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	k.up(`{metadata: {name: careful}, spec: {securityContext: {runAsNonRoot: true, runAsUser: 1000}, containers: [{name: main, command: [sh, -c, "echo mine > /tmp/mine; IDLE"]}]}}`)
	k.up(`{metadata: {name: nouser}, spec: {securityContext: {runAsNonRoot: true}, containers: [{name: main, securityContext: {runAsUser: 1000, runAsNonRoot: true}, command: [sh, -c, IDLE]}]}}`)
	k.pod(`{metadata: {name: pulling}, spec: {containers: [{name: main, image: "127.0.0.1:1/no/such:1"}]}}`)
	k.Wait("pulling", "in its sandbox", func(p *corev1.Pod) bool { return p.Status.PodIP != "" })
	k.WaitWaiting("pulling", "main", "ImagePullBackOff")
	for name, c := range map[string]struct {
		pod    string
		change func(*imageExec)
		want   []string
	}{
		"no image":         {"app", func(x *imageExec) { x.image = "" }, []string{"you must specify the image"}},
		"a bad image name": {"app", func(x *imageExec) { x.image = "UPPER:1" }, []string{"UPPER"}},
		"no registry":      {"app", func(x *imageExec) { x.image = "127.0.0.1:1/no/such:1" }, []string{"127.0.0.1:1", "cannot be reached"}},
		"no such target":   {"app", target("nobody"), []string{`"nobody"`}},
		"no such pod":      {"nobody", func(*imageExec) {}, []string{`"nobody"`}},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kit{k.With(t), t}
			for _, spdy := range []bool{false, true} {
				var out, errs bytes.Buffer
				x := imageExec{image: images.BusyboxRef, command: []string{"true"}, stdout: &out, stderr: &errs, ctx: k.ctx(), spdy: spdy}
				c.change(&x)
				code, err := k.start(c.pod, x)
				if err == nil {
					t.Fatalf("code %d, %q", code, errs.String())
				}
				for _, w := range c.want {
					if spdy && !strings.Contains(err.Error(), w) {
						t.Errorf("the error does not say %q: %v", w, err)
					}
				}
			}
		})
	}
	t.Run("IX-10 what is left out is told", func(t *testing.T) {
		k := &kit{k.With(t), t}
		_, errs, code := k.into("pulling", "ls /c; cat /c/.wherry/notes >&2")
		if code != 0 || strings.Count(errs, "container main is left out: it has not run yet (ImagePullBackOff)") != 2 {
			t.Errorf("code %d, %q", code, errs)
		}
	})
	t.Run("a pod without root", func(t *testing.T) {
		k := &kit{k.With(t), t}
		out, errs, code := k.into("careful", "id -u; cat /c/main/tmp/mine; cat /c/.wherry/main/env | head -c 5; grep Cap.nd /proc/self/status")
		if code != 0 || !strings.HasPrefix(out, "1000\nmine\nPATH=") || !strings.Contains(out, "CapBnd:\t0000000000000000") || !strings.Contains(errs, "runAsNonRoot") {
			t.Errorf("code %d, %q, %q", code, out, errs)
		}
		k.shows("nouser", "id -u", "1000")
	})
	if left := k.remains(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestImageExecDead: IX-09: the last files of containers that crash, and of pods that have ended.
func TestImageExecDead(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.configMap("settings", map[string]string{"color": "blue"})
	k.pod(`
metadata: {name: crash}
spec:
  containers:
  - {name: main, command: [sh, -c, "echo attempt >> /data/attempts; echo died > /why; echo last words; exit 3"], volumeMounts: [{name: v, mountPath: /data}]}
  - {name: other, command: [sh, -c, IDLE]}
  volumes: [{name: v, emptyDir: {}}]
`)
	k.pod(`
metadata: {name: failed}
spec:
  restartPolicy: Never
  containers:
  - name: main
    command: [sh, -c, "echo died > /why; echo gone > /data/x; echo last words >&2; exit 4"]
    ports: [{containerPort: 80, hostPort: 31999}]
    volumeMounts: [{name: v, mountPath: /data}]
  - {name: wrong, command: [/no/such/program]}
  volumes: [{name: v, emptyDir: {}}]
`)
	k.pod(`{metadata: {name: done}, spec: {restartPolicy: Never, containers: [{name: main, command: [sh, -c, "echo made > /result"]}]}}`)
	t.Run("CrashLoopBackOff", func(t *testing.T) {
		k := &kit{k.With(t), t}
		k.WaitWaiting("crash", "main", "CrashLoopBackOff")
		k.shows("crash", "cat /c/main/why; sort -u /c/main/data/attempts; cat /c/.wherry/main/log; grep exitCode /c/.wherry/main/status.json", "died\nattempt\nlast words\n  \"exitCode\": 3,")
		if _, errs, code := k.into("crash", "echo x > /c/main/new"); code == 0 || !strings.Contains(errs, "Read-only") {
			t.Errorf("writing: code %d, %q", code, errs)
		}
		k.shows("crash", "echo x > /c/main/new; cat /c/main/new", "x", writable)
		if _, errs, code := k.into("crash", "true", target("main")); code != 0 || !strings.Contains(errs, "container main does not run") {
			t.Errorf("a dead target: code %d, %q", code, errs)
		}
		k.shows("crash", "readlink /proc/1/ns/pid", k.sh("crash", "other", "readlink /proc/self/ns/pid"), target("other"))
	})
	t.Run("Failed", func(t *testing.T) {
		k := &kit{k.With(t), t}
		before := k.WaitPhase("failed", corev1.PodFailed)
		out, errs, code := k.into("failed", "cat /c/main/why /c/.wherry/main/log; ls -d /c/wrong/bin; cat /c/main/data/x; hostname; grep -c failed /etc/hosts")
		if out != "died\nlast words\n/c/wrong/bin\nfailed\n1\n" || code != 0 {
			t.Errorf("code %d, %q, %q", code, out, errs)
		}
		for _, want := range []string{"the command runs in a network of its own", "container main: /data is not shown"} {
			if !strings.Contains(errs, want) {
				t.Errorf("not told %q: %q", want, errs)
			}
		}
		k.shows("failed", "grep exitCode /c/.wherry/main/status.json", `  "exitCode": 4,`)
		k.shows("failed", "echo x > /c/main/new; cat /c/main/new", "x", writable)
		if after := k.Get("failed"); !reflect.DeepEqual(ofWorker(before), ofWorker(after)) {
			t.Errorf("the pod's status changed:\n%s", diff.Diff(before.Status, after.Status))
		}
	})
	t.Run("Succeeded", func(t *testing.T) {
		k := &kit{k.With(t), t}
		k.WaitPhase("done", corev1.PodSucceeded)
		k.shows("done", "cat /c/main/result", "made")
	})
	if left := k.remains(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestImageExecLoop: IX-11: all pods of a namespace in a loop, nobody at a terminal, each exit code its own; many at once.
func TestImageExecLoop(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for i, name := range []string{"a", "b", "c", "d"} {
		k.pod(fmt.Sprintf(`{metadata: {name: %s}, spec: {containers: [{name: main, command: [sh, -c, "echo %d > /number; touch /ready; IDLE"], readinessProbe: {exec: {command: [test, -e, /ready]}, periodSeconds: 1}}]}}`, name, i))
	}
	var all sync.WaitGroup
	for i, name := range []string{"a", "b", "c", "d"} {
		k.WaitReady(name)
		for range 3 {
			all.Go(func() {
				out, errs, code := k.into(name, "n=$(cat /c/main/number); echo pod $n; exit $n")
				if out != fmt.Sprintf("pod %d\n", i) || code != i {
					t.Errorf("%s: %q, code %d, %q", name, out, code, errs)
				}
			})
		}
	}
	all.Wait()
	if left := k.remains(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestImageExecGone: IX-05: a client that goes away takes the command with it, whatever that was at; so does the pod.
func TestImageExecGone(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	k := kitOn(t, own(t))
	k.up(`{metadata: {name: app}, spec: {containers: [{name: main, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /data}]}], volumes: [{name: v, emptyDir: {}}]}}`)
	k.pod(`{metadata: {name: done}, spec: {restartPolicy: Never, containers: [{name: main, command: [sh, -c, "exit 1"]}]}}`)
	k.WaitPhase("done", corev1.PodFailed)
	nothing := func(t *testing.T) {
		t.Helper()
		k := &kit{k.With(t), t}
		k.awaitNothing()
	}
	// In the end these come at all the phases: before the pull, between container and start, while it runs.
	for _, pod := range []string{"app", "done"} {
		for _, after := range []time.Duration{5, 20, 40, 60, 80, 120, 200, 300} {
			t.Run(fmt.Sprintf("%s after %d ms", pod, after), func(t *testing.T) {
				k := &kit{k.With(t), t}
				ctx, cancel := context.WithTimeout(k.ctx(), after*time.Millisecond)
				defer cancel()
				_, err := k.start(pod, imageExec{image: images.BusyboxRef, command: []string{"sleep", "1000"}, stdout: io.Discard, stderr: io.Discard, ctx: ctx, spdy: after%40 == 0})
				if err == nil {
					t.Error("sleep 1000 ended")
				}
				nothing(t)
			})
		}
	}
	t.Run("silent and deaf", func(t *testing.T) {
		for _, spdy := range []bool{false, true} {
			k := &kit{k.With(t), t}
			ctx, cancel := context.WithCancel(k.ctx())
			out := &notice{text: "begun", then: cancel}
			_, err := k.start("app", imageExec{image: images.BusyboxRef, command: []string{"sh", "-c", "trap '' TERM HUP INT; echo begun; exec sleep 1000"}, stdout: out, ctx: ctx, spdy: spdy})
			if err == nil {
				t.Error("sleep 1000 ended")
			}
			nothing(t)
		}
	})
	t.Run("the pod is deleted", func(t *testing.T) {
		k := &kit{k.With(t), t}
		pod := k.up(`{metadata: {name: goes}, spec: {containers: [{name: main, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /data}]}], volumes: [{name: v, emptyDir: {medium: Memory}}]}}`)
		out := &notice{text: "begun", then: func() { k.Delete("goes") }}
		code, err := k.start("goes", imageExec{image: images.BusyboxRef, command: []string{"sh", "-c", "echo begun; exec sleep 1000"}, stdout: out, ctx: k.ctx(), writable: true})
		if err == nil && code != 137 {
			t.Errorf("code %d", code)
		}
		k.WaitGone(pod)
		k.AwaitNoTrace(pod)
		nothing(t)
	})
}

// notice calls a function when a text is written.
type notice struct {
	text string
	then func()
	seen bytes.Buffer
	once sync.Once
}

func (n *notice) Write(p []byte) (int, error) {
	n.seen.Write(p)
	if strings.Contains(n.seen.String(), n.text) {
		n.once.Do(n.then)
	}
	return len(p), nil
}

// TestImageExecServerKilled: IX-05: what a killed server was at is taken away at its next start, or by purge, and the pod does not
// notice.
func TestImageExecServerKilled(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	srv := own(t)
	pods := func(k *kit) {
		k.up(`{metadata: {name: app}, spec: {containers: [{name: main, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /data}]}], volumes: [{name: v, emptyDir: {}}]}}`)
		k.pod(`{metadata: {name: done}, spec: {restartPolicy: Never, containers: [{name: main, command: [sh, -c, "exit 1"]}]}}`)
		k.WaitPhase("done", corev1.PodFailed)
	}
	under := func(k *kit) (ended *sync.WaitGroup) {
		t.Helper()
		ended = &sync.WaitGroup{}
		begun := make(chan struct{}, 2)
		for _, pod := range []string{"app", "done"} {
			out := &notice{text: "begun", then: func() { begun <- struct{}{} }}
			ended.Go(func() {
				_, _ = k.start(pod, imageExec{image: images.BusyboxRef, command: []string{"sh", "-c", "echo begun; exec sleep 1000"}, stdout: out, ctx: k.ctx(), writable: true})
				out.once.Do(func() { begun <- struct{}{} }) // so that a failure does not hang the test
			})
		}
		<-begun
		<-begun
		return ended
	}
	// After the test's space is gone, and before its server is purged: what purge finds of a server that was killed.
	t.Cleanup(func() {
		k := &kit{&Space{Server: srv, T: t, Namespace: "default", ctx: context.Background()}, t}
		pods(k)
		ended := under(k)
		srv.Kill()
		ended.Wait()
	})
	k := kitOn(t, srv)
	pods(k)
	ended := under(k)
	if len(k.folders()) < 4 { // a folder and a mount each
		t.Fatalf("no image exec under way: %v", k.folders())
	}
	before := k.Get("app")
	srv.Kill()
	ended.Wait()
	k.must(srv.Start(k.Context()))
	if left := append(k.remains(), k.folders()...); len(left) > 0 {
		t.Errorf("left after the next start: %v", left)
	}
	k.shows("app", "ls -d /c/main/data", "/c/main/data")
	if after := k.Get("app"); !reflect.DeepEqual(ofWorker(before).ContainerStatuses, ofWorker(after).ContainerStatuses) {
		t.Errorf("the pod noticed:\n%s", diff.Diff(before.Status, after.Status))
	}
}

// TestImageExecPull: IX-02: the image is fetched when the command runs, with the secrets of the pod that it runs in.
func TestImageExecPull(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	reg := k.Registry(t)
	reg.Lock("ann", "secret word")
	k.Kubectl("create", "secret", "docker-registry", "pull", "--docker-server="+reg.Host, "--docker-username=ann", "--docker-password=secret word")
	k.up(`{metadata: {name: with}, spec: {imagePullSecrets: [{name: pull}], containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	k.up(`{metadata: {name: without}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	ref := reg.Push(k.Server, images.ToolRef, "private/debug:1")
	tool := func(x *imageExec) { x.image, x.command = ref, []string{"/tool", "env", "IMAGE_SAYS"} }
	var out bytes.Buffer
	x := imageExec{stdout: &out, ctx: k.ctx(), spdy: true}
	tool(&x)
	if code, err := k.start("without", x); err == nil || !strings.Contains(err.Error(), "asks for credentials: add an imagePullSecret") {
		t.Errorf("without the secret: code %d, %v", code, err)
	}
	k.shows("with", "", "IMAGE_SAYS=hello", tool)
}
