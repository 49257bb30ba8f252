// SPDX-License-Identifier: Apache-2.0

// As the program itself: an MPTCP socket takes no filter.
//
//go:debug multipathtcp=0
package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/cri/critest/progimage"
	"github.com/wherryproject/wherry/internal/node/logs"
	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/runtime"
	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// childMark is in the environment of the process that runs the real runtime.
const childMark = "WHERRY_HTTPAPI_TEST_CHILD"

// The API in front of the embedded containerd: exec, attach (EC-14, EC-15), port-forward, logs (PL-09), stats. It runs
// in a process of its own, for containerd leaves goroutines that only the end of the process ends.
func TestOnEmbeddedContainerd(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, _, err := bundle.Embedded().PauseImage(); errors.Is(err, bundle.ErrNotBuilt) {
		t.Skip("needs the helper programs: run make helpers")
	}
	if os.Getenv(childMark) == "" {
		child := osexec.Command(os.Args[0], "-test.run=^TestOnEmbeddedContainerd$", "-test.v", "-test.timeout=5m")
		child.Env = append(os.Environ(), childMark+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	rt, parent := startRuntime(t)
	port := freePort(t)
	var pod realPod
	w := newWorld(t, func(c *Config) {
		c.CRI, c.Attach, c.Streams, c.Exec, c.Forward = cri.FromConn(rt.Conn()), rt, rt, execer{rt}, rt
		c.Logs = logs.Read
		pod = runRealPod(t, c.CRI, parent, port)
	})
	w.host.sandbox, w.host.containers, w.host.logPath = pod.sandbox,
		map[string]string{"main": pod.main, "debug": pod.main}, pod.logs
	for how := range executors {
		t.Run("EC-14 exec "+how, func(t *testing.T) { w.realExec(t, how) })
		t.Run("EC-15 attach "+how, func(t *testing.T) { w.realAttach(t, how) })
		t.Run("EC-16 attach to an ordinary container "+how, func(t *testing.T) { w.realReplay(t, pod, how) })
		t.Run("EC-16 attach to a short command "+how, func(t *testing.T) { w.realShort(t, pod, how) })
		t.Run("exec with a terminal "+how, func(t *testing.T) { w.realTerminal(t, how) })
	}
	t.Run("EC-14 port-forward", func(t *testing.T) { w.realForward(t, port) })
	t.Run("PL-09 logs", func(t *testing.T) { w.realLogs(t, pod) })
	t.Run("stats", func(t *testing.T) {
		if code, body := w.get(w.masters, "/stats/summary"); code != 200 ||
			!strings.Contains(body, `"podRef":{"name":"web"`) || !strings.Contains(body, "workingSetBytes") {
			t.Errorf("%d %s", code, body)
		}
	})
}

// execer runs commands by the runtime, as the server's own does.
type execer struct{ *runtime.Runtime }

func (e execer) Exec(ctx context.Context, id string, c Command) (int, error) {
	return e.Runtime.Exec(ctx, id, runtime.ExecOptions{Command: c.Words, Stdin: c.Stdin, Stdout: c.Stdout,
		Stderr: c.Stderr, TTY: c.TTY, Resize: c.Resize, Ended: c.Ended})
}

func startRuntime(t *testing.T) (*runtime.Runtime, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wherry-httpapi-")
	if err != nil {
		t.Fatal(err)
	}
	parent := "/" + filepath.Base(dir)
	t.Cleanup(func() {
		if err := runtime.Purge(context.Background(), dir); err != nil {
			t.Errorf("Purge: %v", err)
		}
		for _, pattern := range []string{"/sys/fs/cgroup" + parent, "/sys/fs/cgroup/*" + parent} {
			found, _ := filepath.Glob(pattern)
			for _, g := range found {
				_ = os.Remove(g)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the data folder cannot be deleted: %v", err)
		}
	})
	rt, err := runtime.Start(t.Context(), runtime.Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	archive, err := progimage.Archive()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Import(t.Context(), bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	return rt, parent
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

type realPod struct {
	sandbox, main, logs string
	box                 *runtimeapi.PodSandboxConfig
}

// runRealPod runs a pod on the node's network whose main echoes its standard input and on a port.
func runRealPod(t *testing.T, c *cri.Client, parent string, port int) realPod {
	t.Helper()
	host := &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_CONTAINER}
	labels := map[string]string{cri.LabelPodUID: "uid-1", cri.LabelPodName: "web", cri.LabelPodNamespace: "default",
		cri.LabelContainerName: "main", cri.LabelContainerType: podspec.Ephemeral.Label()}
	box := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "uid-1"}, Labels: labels,
		LogDirectory: t.TempDir(), Linux: &runtimeapi.LinuxPodSandboxConfig{CgroupParent: parent,
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: host}},
	}
	s, err := c.Runtime.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: box})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.Runtime.RemovePodSandbox(context.Background(),
			&runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.GetPodSandboxId()}); err != nil {
			t.Errorf("RemovePodSandbox: %v", err)
		}
	})
	ctr,
		err := c.Runtime.CreateContainer(t.Context(),
		&runtimeapi.CreateContainerRequest{PodSandboxId: s.GetPodSandboxId(), SandboxConfig: box,
			Config: &runtimeapi.ContainerConfig{
				Metadata: &runtimeapi.ContainerMetadata{Name: "main"},
				Image:    &runtimeapi.ImageSpec{Image: progimage.Ref}, Labels: labels,
				Args: []string{"stdout=started", "echo=true", fmt.Sprintf("listen=%d", port)}, Stdin: true,
				LogPath: "main",
				Linux:   &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: host}},
			}})
	if err != nil {
		t.Fatal(err)
	}
	if _,
		err := c.Runtime.StartContainer(t.Context(),
		&runtimeapi.StartContainerRequest{ContainerId: ctr.GetContainerId()}); err != nil {
		t.Fatal(err)
	}
	return realPod{sandbox: s.GetPodSandboxId(), main: ctr.GetContainerId(), logs: box.GetLogDirectory(), box: box}
}

func (w *world) realExec(t *testing.T, how string) {
	e := w.executor(how, "/exec/default/web/main?input=1&output=1&error=1&"+
		command("/prog", "stdout=hello", "stderr=oops", "echo=true", "run_for=0s", "exit_code=7"))
	var out, errOut bytes.Buffer
	err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("input"), Stdout: &out,
		Stderr: &errOut})
	exit, ok := errors.AsType[exec.CodeExitError](err)
	if !ok || exit.Code != 7 || out.String() != "hello\ninput" || errOut.String() != "oops\n" {
		t.Errorf("%v, stdout %q, stderr %q", err, out.String(), errOut.String())
	}
}

func (w *world) realTerminal(t *testing.T, how string) {
	e := w.executor(how, "/exec/default/web/main?input=1&output=1&tty=1&"+
		command("/prog", "stdout=hello", "run_for=0s"))
	in, inEnd := io.Pipe()
	defer func() { _ = inEnd.Close() }()
	var out bytes.Buffer
	err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: in, Stdout: &out, Tty: true})
	if err != nil || out.String() != "hello\r\n" { // a terminal says \r\n
		t.Errorf("%v, %q", err, out.String())
	}
}

// Two clients, one after the other: the first loses its connection, the container goes on, the second talks to it. Both
// see everything from its start.
func (w *world) realAttach(t *testing.T, how string) {
	for i := range 2 {
		e := w.executor(how, "/attach/default/web/main?input=1&output=1&error=1")
		ctx, cancel := context.WithCancel(t.Context())
		out, outEnd := io.Pipe()
		in, inEnd := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: outEnd, Stderr: io.Discard})
		}()
		words := fmt.Sprintf("%s %d\n", how, i)
		go func() { _, _ = io.WriteString(inEnd, words) }()
		lines := bufio.NewReader(out)
		first, err := lines.ReadString('\n')
		for line := first; err == nil && line != words; {
			line, err = lines.ReadString('\n')
		}
		if err != nil || first != "started\n" { // what was said before anybody came
			t.Errorf("EC-16 client %d: it sees %q first, %v", i, first, err)
		}
		cancel()
		<-done
		_ = inEnd.Close()
		_ = out.Close()
	}
	if code, body := w.get(w.masters, "/runningpods"); code != 200 || !strings.Contains(body, `"name":"main"`) {
		t.Errorf("the container ended with its client: %s", body)
	}
}

func (w *world) realForward(t *testing.T, port int) {
	tr, upgrader, err := spdy.RoundTripperFor(w.masters)
	if err != nil {
		t.Fatal(err)
	}
	u := &url.URL{Scheme: "https", Host: w.addr, Path: "/portForward/default/web"}
	stop, ready := make(chan struct{}), make(chan struct{})
	fw, err := portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: tr}, "POST", u),
		[]string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- fw.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	ports, err := fw.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	if got := talk(t, ports[0].Local, "one\ntwo\n"); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func (w *world) realLogs(t *testing.T, pod realPod) {
	body := bufio.NewReader(w.open("/containerLogs/default/web/main?follow=true"))
	if line, err := body.ReadString('\n'); err != nil || line != "started\n" {
		t.Errorf("%q, %v", line, err)
	}
	if _, err := w.server.config.CRI.Runtime.StopContainer(t.Context(),
		&runtimeapi.StopContainerRequest{ContainerId: pod.main, Timeout: 10}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.ReadAll(body)
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("the log is followed beyond its container's end")
	}
	if code, text := w.get(w.masters, "/containerLogs/default/web/main?tailLines=1"); code != 200 ||
		!strings.HasSuffix(text, "\n") || strings.Count(text, "\n") != 1 {
		t.Errorf("of an ended container: %d %q", code, text)
	}
	for how := range executors {
		e := w.executor(how, "/exec/default/web/main?output=1&"+command("/prog"))
		err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil ||
			!strings.Contains(err.Error(), `container "main" in pod "web": container is in CONTAINER_EXITED state`) {
			t.Errorf("exec by %s in an ended container: %v", how, err)
		}
	}
}

// ordinary runs a container of the pod that is none of debugging's, under its own name.
func (w *world) ordinary(t *testing.T, pod realPod, name string, args ...string) (id string) {
	t.Helper()
	c := w.server.config.CRI
	if err := os.Mkdir(filepath.Join(pod.logs, name), 0o755); err != nil {
		t.Fatal(err)
	}
	host := &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_CONTAINER}
	labels := maps.Clone(pod.box.GetLabels())
	labels[cri.LabelContainerType], labels[cri.LabelContainerName] = podspec.Main.Label(), name
	made, err := c.Runtime.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: pod.sandbox,
		SandboxConfig: pod.box, Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: progimage.Ref},
			Labels: labels, Args: args, Stdin: true, LogPath: filepath.Join(name, "main"),
			Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: host}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	id = made.GetContainerId()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	events, err := c.Runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer cancel()
		_, stopErr := c.Runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id})
		// The client, and who stops it, may know of the end before the runtime has written it down, which removes
		// nothing that runs.
		awaitEnd(t, events, id)
		_, err := c.Runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
		if err := errors.Join(stopErr, err); err != nil {
			t.Error(err)
		}
	})
	if _,
		err := c.Runtime.StartContainer(t.Context(),
		&runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	return id
}

// awaitEnd waits until a runtime has said that a container ended.
func awaitEnd(t *testing.T, events runtimeapi.RuntimeService_GetContainerEventsClient, id string) {
	t.Helper()
	for {
		e, err := events.Recv()
		if err != nil {
			t.Errorf("the end of %s: %v", id, err)
			return
		}
		if e.GetContainerId() == id && e.GetContainerEventType() == runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT {
			return
		}
	}
}

// logged waits for a line of a container's log: a container that was started may not have printed yet, and a runtime
// without our tap loses for a client what is printed while the client is joined.
func logged(t *testing.T, path, line string) {
	t.Helper()
	files, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if err := files.Add(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	for end := time.After(time.Minute); ; {
		if text, _ := os.ReadFile(path); strings.Contains(string(text), line) {
			return
		}
		select {
		case <-files.Events:
		case err := <-files.Errors:
			t.Fatal(err)
		case <-end:
			t.Fatalf("%s is not in %s", line, path)
		}
	}
}

// Who attaches to an ordinary container sees what was printed before, once; who has read the log just before does not
// see it again.
func (w *world) realReplay(t *testing.T, pod realPod, how string) {
	name := "echo-" + how
	was, wasLog := w.host.containers["main"], w.host.logPath
	defer func() { w.host.containers["main"], w.host.logPath = was, wasLog }()
	w.host.containers["main"] = w.ordinary(t, pod, name, "stdout=started", "echo=true")
	w.host.logPath = filepath.Join(pod.logs, name)
	logged(t, filepath.Join(pod.logs, name, "main"), "started")
	for i, reads := range []bool{false, true, false} {
		reader := fmt.Sprintf("reader=%d", i)
		if reads {
			// Who is attached may see a line before the log has it.
			logged(t, filepath.Join(pod.logs, name, "main"), fmt.Sprintf("%s %d", how, i-1))
			if code, text := w.get(w.masters, "/containerLogs/default/web/main?"+reader); code != 200 ||
				!strings.HasPrefix(text, "started\n") {
				t.Errorf("the log: %d %q", code, text)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		e := w.executor(how, "/attach/default/web/main?input=1&output=1&"+reader)
		out, outEnd := io.Pipe()
		in, inEnd := io.Pipe()
		done := make(chan error, 1)
		go func() {
			err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: outEnd})
			_ = outEnd.CloseWithError(err)
			done <- err
		}()
		words := fmt.Sprintf("%s %d\n", how, i)
		go func() { _, _ = io.WriteString(inEnd, words) }()
		lines := bufio.NewReader(out)
		var seen []string
		for line, err := lines.ReadString('\n'); ; line, err = lines.ReadString('\n') {
			if err != nil {
				t.Fatalf("client %d: %q, %v", i, seen, err)
			}
			if seen = append(seen, line); line == words {
				break
			}
		}
		want := i + 2 // started, and the words of all up to it
		if reads {
			want = 1
		}
		if len(seen) != want || !reads && seen[0] != "started\n" {
			t.Errorf("client %d sees %q, want %d lines", i, seen, want)
		}
		cancel()
		<-done
		_ = inEnd.Close()
		_ = out.Close()
	}
}

// A command that has printed and ended before its client was joined, or while it is, has lost nothing.
func (w *world) realShort(t *testing.T, pod realPod, how string) {
	was, wasLog := w.host.containers["main"], w.host.logPath
	defer func() { w.host.containers["main"], w.host.logPath = was, wasLog }()
	attach := func(name string) {
		var out bytes.Buffer
		err := w.executor(how, "/attach/default/web/main?output=1").StreamWithContext(t.Context(),
			remotecommand.StreamOptions{Stdout: &out})
		if err != nil || out.String() != "hi\n" {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
	for i := range 5 {
		name := fmt.Sprintf("short-%s-%d", how, i)
		w.host.containers["main"] = w.ordinary(t, pod, name, "stdout=hi", fmt.Sprintf("run_for=%dms", 5*i),
			"exit_code=3")
		w.host.logPath = filepath.Join(pod.logs, name)
		attach(name)
	}
	c := w.server.config.CRI.Runtime
	stop := &runtimeapi.StopContainerRequest{ContainerId: w.host.containers["main"], Timeout: 10}
	if _, err := c.StopContainer(t.Context(), stop); err != nil { // returns when it has ended, at the latest
		t.Fatal(err)
	}
	attach("the last, once more")
}
