// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// startWith is start with a choice of shims, whose end the caller decides.
func startWith(t *testing.T, dir, shim string) *Runtime {
	t.Helper()
	r, err := Start(t.Context(), Config{
		DataDir: dir, Shim: shim, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Runtime) closed(t *testing.T) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// RS-07: pods that were started by containerd's own shim, as all were by releases before, go on under a server that runs
// new ones by ours, and the other way round: commands, more containers, their ends, their removal.
func TestPodsOfTheOtherShim(t *testing.T) {
	for _, first := range []string{StockShim, OwnShim} {
		then := map[string]string{StockShim: OwnShim, OwnShim: StockShim}[first]
		t.Run(first+" then "+then, func(t *testing.T) {
			dir := dataFolder(t)
			r := startWith(t, dir, first)
			importBox(t, r)
			p := runPod(t, r)
			id := p.run("main", nil)
			r.closed(t)

			r = startWith(t, dir, then)
			defer r.closed(t)
			p.r, p.cri = r, r.cri
			if out, _ := p.exec(id, "echo", "still here"); out != "still here\n" {
				t.Errorf("exec: %q", out)
			}
			more := p.run("more", []string{"echo", "more"})
			eventually(t, "the end of a container that was started since", func() bool {
				return p.status(more).State == criapi.ContainerState_CONTAINER_EXITED
			})
			if text := logOf(t, p, "more"); text != "more\n" {
				t.Errorf("it wrote %q", text)
			}
			fresh := runPod(t, r)
			fresh.run("main", nil)
			fresh.stop()
			p.stop()
		})
	}
}

// shimOfPod is the number of the shim that serves a pod, and that of the process that holds its namespaces.
func shimOfPod(t *testing.T, r *Runtime, p *pod) (shim, holder int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.tasks, p.id, "init.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(data), &holder); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", holder))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "PPid: %d", &shim); err == nil {
			return shim, holder
		}
	}
	t.Fatal("the holder has no parent")
	return 0, 0
}

// PL-38, PL-39: a shim that is killed takes its pod with it: what ran in it ends, the sandbox is not ready and its
// container has exited, no process is left, and all of it can be removed. Other pods are left alone.
func TestShimKilled(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p, other := runPod(t, r), runPod(t, r)
	id, stays := p.run("main", nil), other.run("main", nil)
	main := int(pidOf(t, r, id))
	shim, holder := shimOfPod(t, r, p)
	if err := unix.Kill(shim, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the container has exited", func() bool {
		return p.status(id).State == criapi.ContainerState_CONTAINER_EXITED
	})
	eventually(t, "the sandbox is not ready", func() bool {
		s, err := p.cri.PodSandboxStatus(t.Context(), &criapi.PodSandboxStatusRequest{PodSandboxId: p.id})
		return err == nil && s.Status.State == criapi.PodSandboxState_SANDBOX_NOTREADY
	})
	for what, pid := range map[string]int{"the container's process": main, "the holder": holder} {
		eventually(t, "the end of "+what, func() bool { return unix.Kill(pid, 0) != nil })
	}
	if out, _ := other.exec(stays, "echo", "here"); out != "here\n" {
		t.Errorf("exec in another pod: %q", out)
	}
	p.stopTaken()
	other.stop()
}

// PID-04: the process that holds a pod's namespaces, which the pod's processes can see where they share one of
// processes, has no user, no right and no file of the machine, and tells nothing of it.
func TestHolderIsPowerless(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p := runPod(t, r, func(c *criapi.PodSandboxConfig) {
		c.Linux.SecurityContext.NamespaceOptions.Network = criapi.NamespaceMode_NODE
		c.Linux.SecurityContext.NamespaceOptions.Pid = criapi.NamespaceMode_POD
		c.Linux.Sysctls = map[string]string{"kernel.msgmax": "4242"}
	})
	defer p.stop()
	_, holder := shimOfPod(t, r, p)
	proc := fmt.Sprintf("/proc/%d", holder)
	if line, _ := os.ReadFile(proc + "/cmdline"); string(line) != "/pause\x00" {
		t.Errorf("its command line is %q", line)
	}
	status, err := os.ReadFile(proc + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Name:\tpause\n", "Uid:\t65535\t65535\t65535\t65535\n", "Gid:\t65535\t65535\t65535\t65535\n", "Groups:\t \n",
		"CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n",
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("its status lacks %q", want)
		}
	}
	if found, err := os.ReadDir(proc + "/root"); err != nil || len(found) != 0 {
		t.Errorf("it sees %v, %v; want nothing", found, err)
	}
	if f, err := os.OpenFile(proc+"/exe", os.O_WRONLY, 0); err == nil {
		f.Close()
		t.Error("its program can be written to through it")
	}
	if environment, _ := os.ReadFile(proc + "/environ"); len(environment) != 0 {
		t.Errorf("its environment is %q", environment)
	}
	sees, err := os.ReadFile(proc + "/mountinfo")
	if err != nil || bytes.Count(sees, []byte("\n")) != 1 {
		t.Errorf("its mounts are %q, %v; want one", sees, err)
	}
	if value := sysctlOf(t, proc+"/ns/ipc", "kernel/msgmax"); value != "4242" {
		t.Errorf("kernel.msgmax is %q in the pod's IPC namespace", value)
	}
	for kind, own := range map[string]bool{"ipc": true, "pid": true, "mnt": true, "net": false, "user": false} {
		its, err1 := os.Readlink(proc + "/ns/" + kind)
		ours, err2 := os.Readlink("/proc/thread-self/ns/" + kind) // another thread may have entered a pod's
		if err1 != nil || err2 != nil || (its != ours) != own {
			t.Errorf("namespace %s: its %s, this one's %s (%v, %v), own: %v", kind, its, ours, err1, err2, own)
		}
	}
}

// sysctlOf reads a sysctl as processes in a namespace see it.
func sysctlOf(t *testing.T, namespace, name string) (value string) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with it
		f, err := os.Open(namespace)
		if err == nil {
			err = unix.Setns(int(f.Fd()), 0)
			f.Close()
		}
		var text []byte
		if err == nil {
			text, err = os.ReadFile(filepath.Join("/proc/sys", name))
		}
		value = strings.TrimSpace(string(text))
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return value
}

// RS-08: a shim that is told to end by a signal, as all processes are when a machine is switched off, ends when its
// pod's containers have, and not before.
func TestShimIsToldToEnd(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p := runPod(t, r)
	id := p.run("main", nil)
	shim, holder := shimOfPod(t, r, p)
	if err := unix.Kill(shim, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if out, _ := p.exec(id, "echo", "here"); out != "here\n" {
		t.Errorf("exec after the signal: %q", out)
	}
	if err := unix.Kill(int(pidOf(t, r, id)), unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for what, pid := range map[string]int{"the shim": shim, "the holder": holder} {
		eventually(t, "the end of "+what, func() bool { return unix.Kill(pid, 0) != nil })
	}
	p.stopTaken()
}
