// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/test/images"
)

// onHost is wherry on targets of this machine.
type onHost struct {
	*testing.T
	env []string
}

func (h onHost) wherry(args ...string) Result {
	h.Helper()
	return runWherry(h, func(c *exec.Cmd) { c.Env = append(c.Env, h.env...) }, args...)
}

// begun starts wherry, and returns when its command has printed something. Its error output is there when it has ended.
func (h onHost) begun(args ...string) (*exec.Cmd, *strings.Builder) {
	h.Helper()
	cmd, errs := exec.Command(world(h).Wherry, args...), new(strings.Builder)
	cmd.Env, cmd.Stderr, cmd.WaitDelay = append(os.Environ(), h.env...), errs, Timeout
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 3)); err != nil {
		_ = cmd.Wait() // it says why below
		h.Fatalf("wherry %v: %v\n%s", args, err, errs)
	}
	return cmd, errs
}

// nothingLeft waits until no session has left anything: its guard may still be at work.
func (h onHost) nothingLeft() {
	h.Helper()
	var left []string
	await(h, "the end of all that sessions make", func() bool {
		left = nil
		for _, pattern := range []string{"/run/wherry-debug/*", "/var/tmp/wherry-debug-*", "/sys/fs/cgroup/wherry-debug/*",
			"/sys/fs/cgroup/*/wherry-debug/*/cgroup.procs"} {
			found, _ := filepath.Glob(pattern)
			left = append(left, found...)
		}
		return len(left) == 0
	})
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), "wherry-debug") {
		h.Errorf("DA-01 mounts are left (%v):\n%s", err, mounts)
	}
}

// await waits for something that nothing tells the end of.
func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for until := time.Now().Add(Timeout); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestDebugOnHost: containers of other engines on this machine, without a server (DA-01, DA-02, DA-03, DA-04, DA-08,
// DA-09, DA-11, DA-12, DA-13). The engines come one after the other, so that it can be said that sessions leave nothing.
func TestDebugOnHost(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	t.Run("docker", debugsDocker)
	t.Run("podman", debugsPodman)
	t.Run("cri", debugsCRI)
}

// debugsDocker: running and ended ones of Docker.
func debugsDocker(t *testing.T) {
	docker := StartDocker(t, StartContainerd(t))
	docker.Load(t, world(t))
	h := onHost{t, []string{"DOCKER_HOST=unix://" + docker.Socket}}
	data := t.TempDir()
	docker.Run(t, "run", "-d", "--name", "web", "--network", "none", "-v", data+":/data", "-e", "COLOUR=blue",
		images.ToolRef, "sleep")
	docker.Run(t, "run", "-d", "--name", "strict", "--network", "host", "--user", "1000:1000", "--read-only", "--cap-drop", "ALL",
		images.ToolRef, "sleep")
	end := exec.Command(docker.client, "--host", "unix://"+docker.Socket, "run", "--name", "dead", "--network", "none",
		"-v", data+":/data", images.BusyboxRef, "sh", "-c",
		"echo last words; echo trace > /trace; ln -s /etc/shadow /evil; exit 3")
	if code, err := exitCode(end.Run()); err != nil || code != 3 {
		t.Fatalf("docker run: %d, %v", code, err)
	}
	before := docker.Run(t, "inspect", "web", "strict", "dead")

	t.Run("running", func(t *testing.T) {
		h := onHost{t, h.env}
		h.wherry("debug", "docker:web", "--", "sh", "-c", "cat /proc/1/comm; ls /c; cat /c/.wherry/web/env; exit 7").exits(7).
			Has("tool\n", "web\n", "COLOUR=blue")
		h.wherry("debug", "docker:web", "--", "sh", "-c", "echo x > /c/web/data/new").Says("read-only file system")
		h.wherry("debug", "docker:web", "--writable", "--", "sh", "-c", "echo x > /c/web/data/new").exits(0)
		if text, err := os.ReadFile(filepath.Join(data, "new")); err != nil || string(text) != "x\n" {
			t.Errorf("DA-02 written through /c: %q, %v", text, err)
		}
		h.wherry("debug", "docker:strict", "--", "sh", "-c", "id -u; ls /c/strict/proc/1 >/dev/null && echo seen").exits(0).Has("0\n", "seen")
		h.wherry("debug", "docker:strict", "-u", "1000:1000", "--", "id").exits(0).Has("uid=1000", "gid=1000")
		h.nothingLeft()
	})
	t.Run("ended", func(t *testing.T) {
		h := onHost{t, h.env}
		out := h.wherry("debug", "docker:dead", "--", "sh", "-c",
			"cat /c/dead/trace /c/.wherry/dead/log; ls /c/dead/data; cat /c/.wherry/dead/status.json").exits(0)
		out.Has("trace\n", "last words\n", "new\n", `"exitCode": 3`)
		h.wherry("debug", "docker:dead", "--writable", "--", "true").exits(125).Says("can be read only")
		h.nothingLeft()
	})
	t.Run("files", func(t *testing.T) {
		h := onHost{t, h.env}
		dir := t.TempDir()
		h.wherry("cp", "docker:dead:/trace", dir).exits(0)
		if text, err := os.ReadFile(filepath.Join(dir, "trace")); err != nil || string(text) != "trace\n" {
			t.Errorf("DA-03 copied: %q, %v", text, err)
		}
		h.wherry("cp", filepath.Join(dir, "trace"), "docker:web:/data/in").exits(0)
		if text, err := os.ReadFile(filepath.Join(data, "in")); err != nil || string(text) != "trace\n" {
			t.Errorf("DA-02 copied in: %q, %v", text, err)
		}
		h.wherry("cp", filepath.Join(dir, "trace"), "docker:dead:/in").exits(125).Says("can be read only")
		h.wherry("cp", "docker:dead:/evil", dir)
		if to, err := os.Readlink(filepath.Join(dir, "evil")); err == nil && to != "/etc/shadow" {
			t.Errorf("DA-08 the link leads to %q", to)
		} else if err != nil {
			if text, rerr := os.ReadFile(filepath.Join(dir, "evil")); rerr == nil {
				t.Errorf("DA-08 a link led out of the container: %q", text)
			}
		}
		h.wherry("cp", "docker:web:/none", dir).exits(1).Says("docker:web: ")
	})
	t.Run("image", func(t *testing.T) {
		h := onHost{t, h.env}
		h.wherry("exec", "docker:web", "-m", images.BusyboxRef, "--", "sh", "-c", "ls /c/web/data; busybox id; exit 5").exits(5).Has("new\n", "uid=0")
		h.wherry("exec", "docker:web", "-m", "wherry.test/none:1", "--", "true").exits(125).Says("wherry.test/none:1")
		h.wherry("exec", "docker:web", "--", "true").exits(2).Says("docker exec web", "-m")
		h.nothingLeft()
	})
	t.Run("capture", func(t *testing.T) { capturesDocker(onHost{t, h.env}) })
	t.Run("profiles", func(t *testing.T) {
		h := onHost{t, h.env}
		caps := func(profile string) string {
			out := h.wherry("debug", "docker:web", "--profile", profile, "--", "sh", "-c", "id -u; grep -E '^(CapBnd|NoNewPrivs|Seccomp):' /proc/self/status").exits(0).Out
			return strings.Join(strings.Fields(out), " ")
		}
		if got := caps("restricted"); got != "65534 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2" {
			t.Errorf("DA-04 restricted: %s", got)
		}
		if got := caps("general"); !strings.HasPrefix(got, "0 CapBnd: 00000000a80c25fb") || !strings.HasSuffix(got, "Seccomp: 2") {
			t.Errorf("DA-04 general: %s", got)
		}
		if got := caps("sysadmin"); !strings.HasSuffix(got, "Seccomp: 0") {
			t.Errorf("DA-04 sysadmin: %s", got)
		}
		h.wherry("debug", "docker:web", "--memory", "24Mi", "--", "sh", "-c", "head -c 64m /dev/zero | tail -c 64m | wc -c; echo over").HasNot("67108864").
			Says("killed: it has reached its memory limit of 24Mi (--memory)")
		h.wherry("debug", "docker:web", "--memory", "24Mi", "--", "tail", "-c", "64m", "/dev/zero").exits(137).
			Says("the session has ended: it has reached its memory limit of 24Mi (--memory)")
		h.wherry("debug", "docker:web", "--memory", "1Ki").exits(2).Says("--memory", "8Mi")
		h.nothingLeft()
	})
	t.Run("ends", func(t *testing.T) {
		h := onHost{t, h.env}
		h.wherry("debug", "docker:web", "--ttl", "1s", "--", "sleep", "1000").exits(137).Says("time limit of 1s")
		h.nothingLeft()
		// Over when runc has just begun: it is ended first, so that it says nothing, and starts nothing later.
		early := h.wherry("debug", "docker:web", "--ttl", "1ns", "--", "sleep", "1000").exits(137).Says("time limit of 1ns")
		if strings.Contains(early.Err, "runc") {
			t.Errorf("DA-09 a session that ends early says %s", early.Err)
		}
		h.nothingLeft()
		docker.Run(t, "run", "-d", "--name", "brief", "--network", "none", images.BusyboxRef, "sleep", "100000")
		left, words := h.begun("debug", "docker:brief", "--", "sh", "-c", "echo up; sleep 1000")
		docker.Run(t, "rm", "-f", "brief")
		_ = left.Wait() // its exit code tells
		if code := left.ProcessState.ExitCode(); code != 137 || !strings.Contains(words.String(), "docker:brief has ended") {
			t.Errorf("DA-09 its container has ended, its exit code is %d: %s", code, words)
		}
		stopped := make(chan Result, 1)
		go func() {
			defer close(stopped) // also of one that has failed
			stopped <- h.wherry("debug", "docker:web", "--", "sleep", "1000")
		}()
		await(t, "a session", func() bool { return strings.Contains(h.wherry("ps", "--sessions").Out, "sleep 1000") })
		h.wherry("debug", "stop", "docker:web").exits(0).Has("of docker:web stopped")
		r, ok := <-stopped
		if !ok {
			t.FailNow()
		}
		r.exits(137).Says("stopped by root")
		h.wherry("debug", "stop", "docker:web").exits(1).Says("no debug session")
		// Its first process reaps nobody.
		docker.Run(t, "run", "-d", "--name", "lazy", "--network", "none", images.BusyboxRef, "sleep", "100000")
		killed, _ := h.begun("debug", "docker:lazy", "--", "sh", "-c", "(setsid sleep 1000 &); echo up; sleep 1000 & sleep 1000")
		if err := killed.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = killed.Wait() // it was killed
		h.nothingLeft()
		h.wherry("debug", "docker:lazy", "--ttl", "1s", "--", "sh", "-c", "sleep 1000 & sleep 1000").exits(137)
		h.wherry("debug", "docker:lazy", "--", "sh", "-c", "(setsid sleep 1000 &); sleep 1000 & exit 4").exits(4)
		for line := range strings.Lines(h.wherry("debug", "docker:lazy", "--", "ps").exits(0).Out) {
			// The session's own first process is the machine's to reap when all that was above it was killed.
			if strings.Contains(line, " Z ") && !strings.Contains(line, "[.wherry]") || strings.HasSuffix(line, " 1000\n") {
				t.Errorf("DA-09 a process of a session is left: %s", line)
			}
		}
		docker.Run(t, "rm", "-f", "lazy")
		told, _ := h.begun("debug", "docker:web", "--", "sh", "-c", "trap '' TERM; echo up; sleep 1000 & wait")
		if err := told.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = told.Wait() // its exit code tells
		if code := told.ProcessState.ExitCode(); code != 143 {
			t.Errorf("DA-09 told to end, its exit code is %d", code)
		}
		h.nothingLeft()
		if ps := h.wherry("debug", "docker:web", "--", "ps").exits(0).Out; strings.Contains(ps, "1000") {
			t.Errorf("DA-09 after kill -9 its processes are left:\n%s", ps)
		}
	})
	t.Run("words", func(t *testing.T) {
		h := onHost{t, h.env}
		h.wherry("debug", "docker:none").exits(1).Says("docker:none", "No such container", "docker ps -a")
		h.wherry("debug", "docker:web", "--address", t.TempDir()+"/none").exits(1).Says("there is no socket", "is it running?")
		h.wherry("debug", "systemd:ssh").exits(1).Says("systemd")
		h.wherry("debug", "dokcer:web").exits(2).Says("docker:NAME", "pid:NUMBER")
		h.wherry("debug", "docker:web", "-c", "x").exits(2).Says("-c")
		h.wherry("debug", "docker:web", "--", "nosuch").exits(127).Says("nosuch")
		h.wherry("debug", "docker:web", "--", "/etc/passwd").exits(126).Says("not a program")
		h.wherry("debug", "web", "--data-dir", t.TempDir()).exits(1).Says("sudo wherry debug docker:web")
		h.wherry("debug", "web", "--memory", "64Mi").exits(2).Says("docker:web")
		h.wherry("why", "docker:web", "--exit-code").exits(0).Has("Container docker:web: running", "nothing is wrong")
		h.wherry("why", "docker:dead", "--exit-code").exits(3).Has("failed with exit code 3; its last words: last words", "[docker inspect, State]",
			"sudo wherry debug docker:dead")
		h.wherry("why", "docker:none").exits(1).Says("No such container")
		h.wherry("ps", "docker").exits(0).Has("docker:web", "running").HasNot("docker:dead")
		var rows []struct{ Target, State string }
		if err := json.Unmarshal([]byte(h.wherry("ps", "-a", "-o", "json", "docker").exits(0).Out), &rows); err != nil || len(rows) != 3 {
			t.Errorf("ps -o json: %+v, %v", rows, err)
		}
		nobody := runWherry(t, func(c *exec.Cmd) {
			c.Env = append(c.Env, h.env...)
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}, "debug", "docker:web")
		nobody.exits(1).Says("needs root", "sudo")
	})
	t.Run("terminal", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), Timeout)
		cmd := exec.CommandContext(ctx, world(t).Wherry, "debug", "docker:web")
		cmd.Env = append(os.Environ(), h.env...)
		k := onTerminal(t, &Cmd{Cmd: cmd, t: t, line: "wherry debug docker:web", cancel: cancel}, pty.Winsize{Rows: 33, Cols: 101})
		k.Await("/c/web")
		k.typed("stty size; echo made-$((40+2)); exit 9\r")
		k.Await("33 101")
		k.Await("made-42")
		if code := k.code(); code != 9 {
			t.Errorf("DA-01 it ended with %d and showed\n%s", code, k.Text())
		}
		h.nothingLeft()
	})
	if after := docker.Run(t, "inspect", "web", "strict", "dead"); after != before {
		t.Errorf("DA-01 the containers have changed:\n%s\nand were\n%s", after, before)
	}
	pid := strings.TrimSpace(docker.Run(t, "inspect", "--format", "{{.State.Pid}}", "web"))
	h.wherry("debug", "pid:"+pid, "--", "sh", "-c", "cat /proc/1/comm; ls /c").exits(0).Has("tool\n")
	id := strings.TrimSpace(docker.Run(t, "inspect", "--format", "{{.Id}}", "web"))
	h.wherry("debug", "--address", docker.containerd, "containerd:moby/"+id[:12], "--", "sh", "-c", "cat /proc/1/comm").exits(0).Has("tool\n")
	h.nothingLeft()
}

// debugsPodman: those of podman, of a user namespace of their own too.
func debugsPodman(t *testing.T) {
	p := NeedPodman(t)
	p.Load(t, world(t))
	h := onHost{t, []string{"PATH=" + p.Path + ":" + os.Getenv("PATH")}}
	limits := []string{"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--network", "none"}
	run := func(args ...string) { t.Helper(); p.Run(t, append(append([]string{"run"}, limits...), args...)...) }
	run("-d", "--name", "web", images.ToolRef, "sleep")
	run("-d", "--name", "apart", "--uidmap", "0:200000:65536", "--gidmap", "0:200000:65536", images.ToolRef, "sleep")
	run("--name", "dead", images.BusyboxRef, "sh", "-c", "echo last words; echo trace > /trace")
	h.wherry("debug", "podman:web", "--", "sh", "-c", "cat /proc/1/comm; ls /c").exits(0).Has("tool\n", "web\n")
	h.wherry("debug", "podman:apart", "--", "sh", "-c",
		"cat /proc/1/comm; cat /proc/self/uid_map; ls -ld /c/apart/tool; ls /proc/1/root >/dev/null && touch /root/x /tmp/x && echo mine").
		exits(0).Has("tool\n", "200000", "root", "mine")
	h.wherry("debug", "podman:dead", "--", "sh", "-c", "cat /c/dead/trace /c/.wherry/dead/log").exits(0).Has("trace\n", "last words")
	h.wherry("exec", "podman:apart", "-m", "wherry.dev/toolbox", "-u", "1000", "--", "id").exits(0).Has("uid=1000")
	h.wherry("exec", "podman:apart", "-m", images.BusyboxRef, "--", "sh", "-c",
		"id -u; busybox stat -c %u /bin/busybox; touch /x && echo wrote; ls /c/apart/tool").exits(0).Has("0\n0\nwrote\n/c/apart/tool")
	h.wherry("exec", "podman:web", "-m", "wherry.test/none:1", "--", "true").exits(125).Says("wherry.test/none:1", "engine does not have it")
	h.wherry("ps", "-a", "podman").exits(0).Has("podman:web", "podman:dead")
	h.wherry("debug", "podman:none").exits(1).Says("no such container", "podman ps -a")
	h.nothingLeft()
}

// debugsCRI: those of a CRI runtime by their pod's name, running and ended.
func debugsCRI(t *testing.T) {
	d := StartContainerd(t)
	d.Load(t, world(t))
	srv := own(t, ServerOptions{NoImages: true, Args: []string{"--container-runtime-endpoint", "unix://" + d.socket}})
	k := inDefault(t, srv)
	k.pod(`
metadata: {name: web}
spec: {hostNetwork: true, restartPolicy: Never, containers: [{name: main, image: tool, args: [sleep]}, {name: brief, command: [sh, -c, "echo last words; echo trace > /trace; exit 3"]}]}
`)
	k.Wait("web", "brief ended", func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == "brief" && s.State.Terminated != nil
		})
	})
	h := onHost{t, []string{"CONTAINERD_ADDRESS=" + d.socket, "CONTAINER_RUNTIME_ENDPOINT=unix://" + d.socket}}
	h.wherry("debug", "cri:web/main", "--", "sh", "-c", "cat /proc/1/comm; ls /c").exits(0).Has("tool\n", "main\n")
	h.wherry("debug", "cri:web/brief", "--", "sh", "-c", "cat /c/brief/trace /c/.wherry/brief/log").exits(0).Has("trace\n", "last words\n")
	h.wherry("ps", "-a", "cri").exits(0).Has("cri:web/main", "cri:web/brief")
	h.wherry("debug", "cri:web/none").exits(1).Says("crictl ps -a")
	h.nothingLeft()
}
