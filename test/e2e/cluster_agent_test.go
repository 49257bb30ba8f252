// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cluster/agent/agenttest"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/test/images"
)

// agentRun is an agent that is started by hand beside a runtime with a pod, web, of the containers main, which runs, and
// brief, which has ended.
type agentRun struct {
	testing.TB
	*agenttest.Client
	pod  wire.Pod
	cmd  *exec.Cmd
	onIt onHost
}

// agentPod is the pod's uid.
const agentPod = "0b9e8a5c-3d0f-4a52-8f43-0d7d4f3b7d11"

// TestClusterAgent: sessions by an agent beside pods of another runtime (DA-02 to DA-05, DA-07 to DA-09). Not beside others,
// so that it can be said that sessions leave nothing.
func TestClusterAgent(t *testing.T) {
	needBusybox(t)
	d := StartContainerd(t)
	d.Load(t, world(t))
	makesPod(t, d, "web", agentPod)
	pki := agenttest.NewPKI(t)
	a := startAgent(t, d, pki)
	t.Run("shell", func(t *testing.T) { a.of(t).shells() })
	t.Run("exec", func(t *testing.T) { a.of(t).execs() })
	t.Run("terminal", func(t *testing.T) { a.of(t).terminals() })
	t.Run("refusals", func(t *testing.T) { a.of(t).refuses() })
	t.Run("evidence", func(t *testing.T) { a.of(t).tells() })
	t.Run("ends", func(t *testing.T) { a.of(t).ends() })
	t.Run("pod", func(t *testing.T) { a.of(t).endsWithPod(d) })
	t.Run("killed", func(t *testing.T) { a.of(t).killed() })
	t.Run("swept", func(t *testing.T) {
		startAgent(t, d, pki).allKilled()
		startAgent(t, d, pki)
		onHost{T: t}.nothingLeft()
	})
}

// makesPod makes a pod as a kubelet does. What it returns stops it.
func makesPod(t testing.TB, d *Containerd, name, uid string) (stop func()) {
	client, err := cri.Dial(t.Context(), "unix://"+d.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	labels := func(container string) map[string]string {
		return map[string]string{cri.LabelPodName: name, cri.LabelPodNamespace: "shop", cri.LabelPodUID: uid,
			cri.LabelContainerName: container}
	}
	spaces := &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_CONTAINER}
	box := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "shop", Uid: uid},
		Labels: labels(""), LogDirectory: t.TempDir(),
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: spaces}}}
	made, err := client.Runtime.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: box})
	if err != nil {
		t.Fatal(err)
	}
	stop = func() {
		if _, err := client.Runtime.StopPodSandbox(context.Background(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: made.GetPodSandboxId()}); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		stop() // it may be stopped already
		if _, err := client.Runtime.RemovePodSandbox(context.Background(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: made.GetPodSandboxId()}); err != nil {
			t.Error(err)
		}
	})
	for name, script := range map[string]string{"main": "echo here > /file; exec sleep 100000",
		"brief": "echo last words; echo trace > /trace; ln -s /etc/shadow /evil; exit 3"} {
		c, err := client.Runtime.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: made.GetPodSandboxId(),
			SandboxConfig: box, Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: name},
				Image: &runtimeapi.ImageSpec{Image: images.BusyboxRef, UserSpecifiedImage: images.BusyboxRef}, Labels: labels(name),
				Command: []string{"sh", "-c", script}, LogPath: name + ".log", Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: spaces}},
				Envs: []*runtimeapi.KeyValue{{Key: "COLOUR", Value: []byte("blue")}}}})
		if err == nil {
			_, err = client.Runtime.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: c.GetContainerId()})
		}
		if err != nil {
			t.Fatal(err)
		}
		if name == "brief" {
			await(t, "the end of brief", func() bool {
				got, err := client.Runtime.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: c.GetContainerId()})
				return err == nil && got.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_EXITED
			})
		}
	}
	return stop
}

func startAgent(t *testing.T, d *Containerd, pki *agenttest.PKI) *agentRun {
	cmd := exec.Command(world(t).Wherry, append([]string{"cluster-agent", "--node", "n1", "--listen", "127.0.0.1:0", "--in-place",
		"--cri-socket", d.socket, "--kit", filepath.Join(t.TempDir(), "kit")}, pki.Files("n1")...)...)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the test may have done so
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "listening at "); ok {
			go func() {
				for lines.Scan() {
				}
			}()
			a := &agentRun{TB: t, Client: agenttest.NewClient(t, pki, address, "n1", pki.API()), cmd: cmd, onIt: onHost{T: t},
				pod: wire.Pod{Namespace: "shop", Name: "web", UID: agentPod}}
			return a
		}
	}
	t.Fatalf("the agent has ended: %v", lines.Err())
	return nil
}

// of is it for a subtest.
func (a *agentRun) of(t *testing.T) *agentRun {
	b := *a
	b.TB, b.onIt, b.Client = t, onHost{T: t}, a.Client.For(t)
	return &b
}

func (a *agentRun) ask(as, container string, command ...string) wire.Session {
	return wire.Session{Pod: a.pod, As: as, Container: container, Order: []string{"main", "brief", "later"}, Command: command,
		Stdout: true, Stderr: true, Seconds: 300, By: "jane", ID: agenttest.NewID()}
}

// run runs a session to its end.
func (a *agentRun) run(w wire.Session, input string) (out, errs string, code int) {
	a.Helper()
	w.Stdin = input != ""
	s := a.open(w)
	if w.Stdin {
		s.Send(0, input)
		s.CloseInput()
	}
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	out, errs, status := s.End(ctx)
	if status == nil {
		a.Fatalf("%q: no status, output %q, %q", w.Command, out, errs)
	}
	if code = status.ExitCode(); code < 0 {
		a.Logf("%q: %+v", w.Command, *status)
	}
	return out, errs, code
}

func (a *agentRun) open(w wire.Session) *agenttest.Session {
	a.Helper()
	s, err := a.Session(w)
	if err != nil {
		a.Fatalf("%q: %v", w.Command, err)
	}
	return s
}

func (a *agentRun) has(text string, parts ...string) {
	a.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			a.Errorf("%q is not in %q", p, text)
		}
	}
}

// shells: the namespaces of a container, its files, exit codes, input; DA-03 one that has ended.
func (a *agentRun) shells() {
	out, errs, code := a.run(a.ask(wire.Shell, "main", "sh", "-c",
		"tr '\\0' ' ' < /proc/1/cmdline; ls /c; cat /c/main/file /c/.wherry/main/env; echo oops >&2; exit 7"), "")
	a.has(out, "100000 ", "main\n", "here\n", "COLOUR=blue")
	if errs != "oops\n" || code != 7 {
		a.Errorf("%q, exit code %d", errs, code)
	}
	if out, errs, code := a.run(a.ask(wire.Shell, "main", "cat"), "typed\n"); out != "typed\n" || code != 0 {
		a.Errorf("input: %q, %q, %d", out, errs, code)
	}
	if _, errs, code := a.run(a.ask(wire.Shell, "main", "nosuch"), ""); code != 127 || !strings.Contains(errs, "nosuch") {
		a.Errorf("no such command: %q, %d", errs, code)
	}
	if _, errs, code := a.run(a.ask(wire.Shell, "main", "sh", "-c", "echo x > /c/main/new"), ""); code == 0 {
		a.Errorf("DA-02 written: %q", errs)
	}
	w := a.ask(wire.Shell, "main", "sh", "-c", "echo x > /c/main/new && cat /c/main/new")
	w.Writable = true
	if out, errs, code := a.run(w, ""); code != 0 || out != "x\n" {
		a.Errorf("DA-02 writable: %q, %q, %d", out, errs, code)
	}
	if out, _, code := a.run(a.ask(wire.Shell, "brief", "sh", "-c", "cat /c/brief/trace /c/.wherry/brief/log"), ""); code != 0 ||
		out != "trace\nlast words\n" {
		a.Errorf("DA-03 an ended one: %q, %d", out, code)
	}
	a.onIt.nothingLeft()
}

// execs: the files of all containers; DA-08 a link does not lead out; an image of the pod's own.
func (a *agentRun) execs() {
	w := a.ask(wire.Exec, "", "sh", "-c", "ls /c; cat /c/main/file /c/brief/trace; ls /proc | grep -c '^[0-9]*$'; echo changed > /new; cat /new; exit 5")
	w.Image = images.BusyboxRef
	out, errs, code := a.run(w, "")
	a.has(out, "brief\nmain\n", "here\n", "trace\n", "changed\n")
	if code != 5 {
		a.Errorf("exit code %d: %q", code, errs)
	}
	w = a.ask(wire.Exec, "", "true")
	w.Image = "127.0.0.1:1/none:1"
	if _, errs, code := a.run(w, ""); code == 0 {
		a.Errorf("an image that there is not: %q", errs)
	}
	w = a.ask(wire.Files, "", "/bin/toolbox", "cp-pack", "--root", "/c/brief", "/trace")
	if out, errs, code := a.run(w, ""); code != 0 || !strings.Contains(out, "trace\n") {
		a.Errorf("files: %q, %q, %d", out, errs, code)
	}
	w = a.ask(wire.Files, "", "/bin/toolbox", "cp-pack", "--root", "/c/brief", "--follow", "/evil")
	if out, _, _ := a.run(w, ""); strings.Contains(out, "root:") {
		a.Errorf("DA-08 a link led out of the container: %q", out)
	}
	s := a.open(a.ask(wire.Exec, "main", "true"))
	a.has(strings.Join(s.Notes, "\n"), "container later has no files")
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	s.End(ctx)
	a.onIt.nothingLeft()
}

// terminals: size, its changes, and signals.
func (a *agentRun) terminals() {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	w := a.ask(wire.Shell, "main", "sh", "-c", "trap 'stty size' WINCH; tty; echo ready; while :; do sleep 0.1; done")
	w.TTY, w.Stdin, w.Stderr, w.Term = true, true, false, "xterm"
	s := a.open(w)
	s.Await(ctx, "ready")
	s.Send(4, `{"Width":91,"Height":17}`)
	s.Await(ctx, "17 91")
	s.Send(0, "\x03")
	out, _, status := s.End(ctx)
	a.has(out, "/dev/pts/")
	if status == nil || status.ExitCode() != 130 {
		a.Errorf("^C: %q, %+v", out, status)
	}
	a.onIt.nothingLeft()
}

// refuses: DA-07 another pod than was meant.
func (a *agentRun) refuses() {
	for name, change := range map[string]func(*wire.Session){
		"409 forged uid": func(w *wire.Session) { w.Pod.UID = "0b9e8a5c-0000-4a52-8f43-0d7d4f3b7d11" },
		"404 elsewhere":  func(w *wire.Session) { w.Pod.Name = "db" },
		"404 no such":    func(w *wire.Session) { w.Container = "none" },
		"409 evidence":   func(w *wire.Session) { w.Container, w.Writable = "brief", true },
	} {
		w := a.ask(wire.Shell, "main", "true")
		change(&w)
		_, err := a.Session(w)
		if refused, ok := err.(*agenttest.Refused); !ok || strconv.Itoa(refused.Code) != name[:3] {
			a.Errorf("DA-07 %s: %v", name, err)
		}
	}
	a.onIt.nothingLeft()
}

// tells: DA-03 what is known of the containers.
func (a *agentRun) tells() {
	var got wire.EvidenceOf
	code, refused, err := a.Do(http.MethodGet, wire.PathEvidence, a.pod, &got)
	if err != nil || code != http.StatusOK || len(got.Containers) != 2 {
		a.Fatalf("%d, %+v, %v: %+v", code, refused, err, got)
	}
	brief := got.Containers[0]
	if brief.Name != "brief" || brief.State != "exited" || brief.ExitCode == nil || *brief.ExitCode != 3 ||
		brief.Log != "last words\n" || !brief.Files || brief.FinishedAt == nil {
		a.Errorf("%+v", brief)
	}
	if main := got.Containers[1]; main.Name != "main" || main.State != "running" || main.ExitCode != nil || !main.Files {
		a.Errorf("%+v", main)
	}
}

// ends: DA-09 a session ends with its client, its time, and by stop, which is said to whoever is in it.
func (a *agentRun) ends() {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	forEver := func() wire.Session { return a.ask(wire.Shell, "main", "sh", "-c", "echo ready; sleep 100000") }
	s := a.open(forEver())
	s.Await(ctx, "ready")
	s.Drop()
	a.onIt.nothingLeft()

	w := forEver()
	w.Seconds = 2
	if _, errs, status := a.open(w).End(ctx); status == nil || status.ExitCode() != 137 || !strings.Contains(errs, "time limit") {
		a.Errorf("DA-09 time limit: %q, %+v", errs, status)
	}
	w = forEver()
	s = a.open(w)
	s.Await(ctx, "ready")
	var list wire.RunningList
	if code, refused, err := a.Do(http.MethodGet, wire.PathSessions, a.pod, &list); err != nil || len(list.Items) != 1 ||
		list.Items[0].ID != w.ID || list.Items[0].By != "jane" || list.Items[0].Container != "main" {
		a.Errorf("list: %d, %+v, %v: %+v", code, refused, err, list)
	}
	other := a.pod
	other.UID = "another"
	if code, _, err := a.Do(http.MethodDelete, wire.PathSessions, wire.Stop{Pod: other, By: "eve"}, nil); err != nil || code != http.StatusNotFound {
		a.Errorf("DA-07 stop of another's: %d, %v", code, err)
	}
	if code, refused, err := a.Do(http.MethodDelete, wire.PathSessions, wire.Stop{Pod: a.pod, ID: w.ID, By: "joe"}, nil); err != nil || code != http.StatusOK {
		a.Errorf("stop: %d, %+v, %v", code, refused, err)
	}
	if _, errs, status := s.End(ctx); status == nil || status.ExitCode() != 137 || !strings.Contains(errs, "stopped by joe") {
		a.Errorf("DA-09 stop: %q, %+v", errs, status)
	}
	a.onIt.nothingLeft()
}

// endsWithPod: DA-09 the end of the pod is that of a session which is in its network alone.
func (a *agentRun) endsWithPod(d *Containerd) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	const uid = "5f0c2f0e-6a53-4a52-8f43-0d7d4f3b7d12"
	stop := makesPod(a.TB, d, "fleeting", uid)
	w := a.ask(wire.Exec, "", "sh", "-c", "echo ready; sleep 100000")
	w.Pod.Name, w.Pod.UID = "fleeting", uid
	s := a.open(w)
	s.Await(ctx, "ready")
	stop()
	if _, errs, status := s.End(ctx); status == nil || status.ExitCode() != 137 || !strings.Contains(errs, "its pod has ended") {
		a.Errorf("%q, %+v", errs, status)
	}
	a.onIt.nothingLeft()
}

// killed: DA-09 the agent's death leaves nothing. That it is small while it does nothing is said here too.
func (a *agentRun) killed() {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	const most = 30 << 10 // KiB
	if rss := residentKiB(a, a.cmd.Process.Pid); rss > most {
		a.Errorf("the agent has %d KiB in memory", rss)
	} else {
		a.Logf("the agent has %d KiB in memory", rss)
	}
	for _, tty := range []bool{false, true} {
		w := a.ask(wire.Shell, "main", "sh", "-c", "echo ready; sleep 100000")
		w.TTY, w.Stdin = tty, true
		a.open(w).Await(ctx, "ready")
	}
	for _, pid := range processesNamed("cluster-session") {
		text, err := os.ReadFile(filepath.Join("/proc", pid, "cgroup"))
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, ":/wherry-debug/") {
				a.Errorf("DA-09 the session's process is in a cgroup with its agent: %s", line)
			}
		}
		if err != nil {
			a.Error(err)
		}
	}
	if err := a.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		a.Fatal(err)
	}
	a.onIt.nothingLeft()
	await(a, "the end of the sessions' processes", func() bool { return len(processesNamed("cluster-session")) == 0 })
}

// allKilled kills an agent, a session's process and its guard, so that nobody is left who would take away what there is.
func (a *agentRun) allKilled() {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	w := a.ask(wire.Shell, "main", "sh", "-c", "echo ready; sleep 100000")
	w.Stdin = true
	a.open(w).Await(ctx, "ready")
	guard := []string{"guard-debug-session", w.ID}
	pids := append(processesNamed(guard...), processesNamed("cluster-session")...)
	pids = append(pids, strconv.Itoa(a.cmd.Process.Pid))
	for _, text := range pids { // the guard first: it would hear of the others' end
		pid, err := strconv.Atoi(text)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			a.Fatal(err)
		}
	}
	_ = a.cmd.Wait() // it was killed
	await(a, "the end of the killed", func() bool {
		return len(processesNamed(guard...))+len(processesNamed("cluster-session")) == 0
	})
	if left, err := filepath.Glob("/run/wherry-debug/" + w.ID); err != nil || len(left) == 0 {
		a.Errorf("nothing is left that a new agent could take away (%v)", err)
	}
}

func residentKiB(t testing.TB, pid int) int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	n, err := strconv.Atoi(strings.Fields(rest + " 0")[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// processesNamed are those whose first arguments are these.
func processesNamed(words ...string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, file := range all {
		text, err := os.ReadFile(file)
		_, args, _ := strings.Cut(string(text), "\x00")
		if err == nil && strings.HasPrefix(args, strings.Join(words, "\x00")+"\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}
