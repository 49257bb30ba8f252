// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// abandon makes a container beside one that runs, and leaves it as a runtime does that was killed before it could start it.
func abandon(t *testing.T, r *Runtime, beside, name string) (pid int) {
	t.Helper()
	there := filepath.Join(r.tasks, beside)
	text, err := os.ReadFile(filepath.Join(there, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	spec := map[string]any{}
	if err := json.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	spec["root"].(map[string]any)["path"] = filepath.Join(there, "rootfs")
	linux := spec["linux"].(map[string]any)
	linux["cgroupsPath"] = filepath.Join(filepath.Dir(linux["cgroupsPath"].(string)), name)
	dir := t.TempDir()
	if text, err = json.Marshal(spec); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	// Its output goes nowhere: runc init holds it as long as it waits.
	cmd := exec.Command(filepath.Join(r.dirs.bin, bundle.Runc), "--root", filepath.Join(r.dirs.runc, Namespace), "--log", filepath.Join(dir, "log"),
		"create", "--bundle", dir, name)
	if err := cmd.Run(); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Fatalf("runc create: %v: %s", err, log)
	}
	var state struct {
		Pid int `json:"init_process_pid"`
	}
	text, err = os.ReadFile(filepath.Join(r.dirs.runc, Namespace, name, "state.json"))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil || state.Pid == 0 {
		t.Fatalf("state of %s: %+v, %v", name, state, err)
	}
	return state.Pid
}

// wantTaken checks that nothing of an abandoned container is left.
func wantTaken(t *testing.T, d dirs, name string, pid int) {
	t.Helper()
	eventually(t, "the end of runc init", func() bool { return unix.Kill(pid, 0) == unix.ESRCH || zombie(pid) })
	if _, err := os.Stat(filepath.Join(d.runc, Namespace, name)); !os.IsNotExist(err) {
		t.Errorf("runc's state of %s is still there (%v)", name, err)
	}
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		if left, _ := filepath.Glob(pattern + filepath.Base(d.data) + "/" + name); len(left) > 0 {
			t.Errorf("cgroups left: %v", left)
		}
	}
}

// zombie tells whether a process has ended and its parent, which is not ours, has not looked yet.
func zombie(pid int) bool {
	_, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	return err != nil
}

// PL-38: containers that were made and never started, and that nobody knows, go with the next sandbox that ends, and at the next start;
// what is known is left alone. A half-deleted record goes at the start.
func TestLostContainers(t *testing.T) {
	dir := dataFolder(t)
	r := start(t, dir)
	importBox(t, r)
	stays, goes := runPod(t, r), runPod(t, r)
	id := stays.run("main", nil)
	first := abandon(t, r, id, "lost-one")
	if err := unix.Kill(first, 0); err != nil {
		t.Fatal("runc init does not wait:", err)
	}
	goes.stop()
	wantTaken(t, r.dirs, "lost-one", first)
	if out, _ := stays.exec(id, "echo", "here"); out != "here\n" {
		t.Errorf("exec: %q", out)
	}

	second := abandon(t, r, id, "lost-two")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(r.dirs.root, criPlugin, "containers", "0123.del-status")
	if err := os.WriteFile(record, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := start(t, dir)
	wantTaken(t, again.dirs, "lost-two", second)
	if _, err := os.Stat(record); !os.IsNotExist(err) {
		t.Errorf("the half-deleted record is still there (%v)", err)
	}
	p := &pod{t: t, r: again, cri: again.cri, id: stays.id, sandbox: stays.sandbox}
	if out, _ := p.exec(id, "echo", "here"); out != "here\n" {
		t.Errorf("exec after the restart: %q", out)
	}
	p.stop()
}

// PL-38: a shim that nobody can reach and that does not end with its sandbox is ended; others are left alone.
func TestShimThatOutlivesItsSandbox(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	stays, goes := runPod(t, r), runPod(t, r)
	id := stays.run("main", nil)
	// It stops at its first instruction, and has its name and arguments then.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	shim := exec.Command(filepath.Join(r.dirs.bin, bundle.Serve), "-namespace", Namespace, "-id", "lost-shim", "-address", r.dirs.eventSocket())
	shim.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := shim.Start(); err != nil {
		t.Fatal(err)
	}
	pid := shim.Process.Pid
	defer func() {
		_ = shim.Process.Kill()
		for {
			var how unix.WaitStatus
			if _, err := unix.Wait4(pid, &how, 0, nil); err != unix.EINTR && (err != nil || how.Exited() || how.Signaled()) {
				return
			}
		}
	}()
	if zombie(pid) {
		t.Fatal("the shim has ended by itself")
	}
	goes.stop()
	eventually(t, "the end of the shim", func() bool { return zombie(pid) })
	if out, _ := stays.exec(id, "echo", "here"); out != "here\n" {
		t.Errorf("exec: %q", out)
	}
	stays.stop()
}
