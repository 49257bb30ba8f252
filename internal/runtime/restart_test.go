// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"golang.org/x/sys/unix"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/runtime/network"
)

// childEnv makes a test binary run TestChildProcess on the data folder it names.
const childEnv = "WHERRY_RUNTIME_TEST_DATA"

// TestChildProcess is the body of other processes: it starts a runtime, runs a pod with a container, says so on its
// standard output, and stays until it is killed or its standard input ends; then it closes the runtime.
func TestChildProcess(t *testing.T) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		t.Skip("only as a process of other tests")
	}
	r := start(t, dir)
	importBox(t, r)
	p := runPod(t, r)
	id := p.run("main", nil)
	fmt.Printf("\nREADY %s %s\n", p.id, id)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// child is a runtime in another process.
type child struct {
	cmd     *exec.Cmd
	end     func()
	sandbox string
	id      string
}

func startChild(t *testing.T, dir string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildProcess$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, end: func() { stdin.Close() }}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var said strings.Builder
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if _, err := fmt.Sscanf(lines.Text(), "READY %s %s", &c.sandbox, &c.id); err == nil {
			go func() { // its last words
				for lines.Scan() {
				}
			}()
			return c
		}
	}
	t.Fatalf("the other process did not get ready (%v): %s", lines.Err(), said.String())
	return nil
}

// pidOf is the process id of a container's main process.
func pidOf(t *testing.T, r *Runtime, id string) uint32 {
	t.Helper()
	ctx := namespaces.WithNamespace(t.Context(), Namespace)
	c, err := r.Containerd().LoadContainer(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	task, err := c.Task(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	return task.Pid()
}

// adopted checks that the container of a former process runs here as if it had been started here.
func adopted(t *testing.T, r *Runtime, c *child) *pod {
	t.Helper()
	p := &pod{t: t, r: r, cri: criapi.NewRuntimeServiceClient(r.Conn()), id: c.sandbox}
	s := p.status(c.id)
	if s.State != criapi.ContainerState_CONTAINER_RUNNING {
		t.Fatalf("the container is %v, want running", s.State)
	}
	if out, _ := p.exec(c.id, "echo", "still here"); out != "still here\n" {
		t.Errorf("exec: %q", out)
	}
	return p
}

// After kill -9 of the process that started it, a container runs on; the next process picks it up and hears of its end.
func TestKillAndPickUp(t *testing.T) {
	dir := dataFolder(t)
	c := startChild(t, dir)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()

	r := start(t, dir)
	p := adopted(t, r, c)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	events, err := p.cri.GetContainerEvents(ctx, &criapi.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(int(pidOf(t, r, c.id)), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for {
		e, err := events.Recv()
		if err != nil {
			t.Fatalf("no event of the container's end: %v", err)
		}
		if e.ContainerId == c.id && e.ContainerEventType == criapi.ContainerEventType_CONTAINER_STOPPED_EVENT {
			break
		}
	}
	if s := p.status(c.id); s.ExitCode != 137 {
		t.Errorf("exit code %d, want 137", s.ExitCode)
	}
	p.stop()
}

// Close leaves containers running, also in the process that closed.
func TestCloseLeavesContainersRunning(t *testing.T) {
	dir := dataFolder(t)
	c := startChild(t, dir)
	c.end()
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("the other process: %v", err)
	}
	r := start(t, dir)
	adopted(t, r, c)
	pid := pidOf(t, r, c.id)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(int(pid), 0); err != nil {
		t.Errorf("the container's process: %v", err)
	}
	adopted(t, start(t, dir), c).stop()
}

// Two processes with folders of their own do not see each other.
func TestSideBySide(t *testing.T) {
	a, b := startChild(t, dataFolder(t)), startChild(t, dataFolder(t))
	r := start(t, dataFolder(t))
	list, err := criapi.NewRuntimeServiceClient(r.Conn()).ListContainers(t.Context(), &criapi.ListContainersRequest{})
	if err != nil || len(list.Containers) != 0 {
		t.Errorf("containers %v (%v), want none", list.GetContainers(), err)
	}
	a.end()
	b.end()
}

// A reboot ends every process and mount: state of a former boot is thrown away, images stay.
func TestReboot(t *testing.T) {
	dir := dataFolder(t)
	c := startChild(t, dir)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	if err := Purge(t.Context(), dir); err != nil { // what the power cut does
		t.Fatal(err)
	}
	if err := os.WriteFile(dirsOf(dir).run+"/boot-id", []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, dir)
	p := &pod{t: t, r: r, cri: criapi.NewRuntimeServiceClient(r.Conn()), id: c.sandbox}
	if s := p.status(c.id); s.State != criapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("the container is %v, want exited", s.State)
	}
	s, err := p.cri.PodSandboxStatus(t.Context(), &criapi.PodSandboxStatusRequest{PodSandboxId: c.sandbox})
	if err != nil || s.Status.State != criapi.PodSandboxState_SANDBOX_NOTREADY {
		t.Errorf("the sandbox is %v (%v), want not ready", s.GetStatus().GetState(), err)
	}
	p.stop()
	again := runPod(t, r) // the image is there still
	again.run("main", nil)
	again.stop()
}

// Pods get an address of the pod network, and nothing of it is left after Purge and Teardown.
func TestPodNetwork(t *testing.T) {
	dir := dataFolder(t)
	bridge, subnet, err := network.Derive(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{DataDir: dir, BridgeName: bridge, PodCIDRs: []string{subnet.String()}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	r, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Close()
		if err := Purge(context.Background(), dir); err != nil {
			t.Errorf("Purge: %v", err)
		}
		n, _, _ := c.Network()
		if err := network.Teardown(n); err != nil {
			t.Errorf("Teardown: %v", err)
		}
	})
	importBox(t, r)
	p := runPod(t, r, func(s *criapi.PodSandboxConfig) {
		s.Linux.SecurityContext.NamespaceOptions.Network = criapi.NamespaceMode_POD
		s.Hostname = "pod"
	})
	p.run("main", nil, func(c *criapi.ContainerConfig) {
		c.Linux.SecurityContext.NamespaceOptions.Network = criapi.NamespaceMode_POD
	})
	s, err := p.cri.PodSandboxStatus(t.Context(), &criapi.PodSandboxStatusRequest{PodSandboxId: p.id})
	if err != nil {
		t.Fatal(err)
	}
	ip, err := netip.ParseAddr(s.Status.GetNetwork().GetIp())
	if err != nil || !subnet.Contains(ip) {
		t.Errorf("address %v (%v), want one of %v", ip, err, subnet)
	}
	p.stop()
	runPod(t, r, func(s *criapi.PodSandboxConfig) { // left for Purge
		s.Linux.SecurityContext.NamespaceOptions.Network = criapi.NamespaceMode_POD
	})
}
