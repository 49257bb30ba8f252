// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
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
	labels := map[string]string{cri.LabelContainerType: cri.TypeExec}
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
// ATTACK A16.
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
