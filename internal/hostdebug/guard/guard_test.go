// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const id = "0123456789ab"

func machine(t *testing.T) Machine {
	t.Helper()
	dir := t.TempDir()
	m := Machine{Run: filepath.Join(dir, "run"), Disk: filepath.Join(dir, "disk"),
		Cgroups: filepath.Join(dir, "cgroup")}
	if err := errors.Join(os.MkdirAll(m.Dir(id), 0o700), os.MkdirAll(m.DiskDir(id), 0o700),
		os.MkdirAll(m.Cgroups, 0o755)); err != nil {
		t.Fatal(err)
	}
	return m
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// DA-09: a session is swept when nobody holds its lock any more, and not before.
func TestSweep(t *testing.T) {
	m := machine(t)
	if err := m.Sweep(); err != nil || !exists(m.Dir(id)) {
		t.Errorf("one that is just being made: %v, there %v", err, exists(m.Dir(id)))
	}
	lock, err := os.Create(m.Lock(id))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if err := m.Sweep(); err != nil || !exists(m.Dir(id)) {
		t.Errorf("one that lives: %v, there %v", err, exists(m.Dir(id)))
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Sweep(); err != nil || exists(m.Run) || exists(m.DiskDir(id)) {
		t.Errorf("a forsaken one: %v, there %v and %v", err, exists(m.Run), exists(m.DiskDir(id)))
	}
	if err := m.Sweep(); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := os.MkdirAll(m.Dir(id), 0o700); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * makingTime)
	if err := os.Chtimes(m.Dir(id), long, long); err != nil {
		t.Fatal(err)
	}
	if err := m.Sweep(); err != nil || exists(m.Dir(id)) {
		t.Errorf("one that was never made: %v, there %v", err, exists(m.Dir(id)))
	}
}

// DA-09: the processes of a session's cgroup are ended, whatever they do about signals, and the cgroup is removed; also
// where the first of them does not reap the others.
func TestCleanKills(t *testing.T) {
	m := machine(t)
	parent := "/sys/fs/cgroup"
	if exists("/sys/fs/cgroup/pids") {
		parent = "/sys/fs/cgroup/pids"
	}
	own := filepath.Join(parent, "wherry-guard-test-"+filepath.Base(filepath.Dir(t.TempDir())))
	dir := filepath.Join(own, name, id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Skipf("a cgroup cannot be made here: %v", err)
	}
	t.Cleanup(func() {
		for _, d := range []string{dir, filepath.Dir(dir), own} {
			_ = unix.Rmdir(d) // those that are left
		}
	})
	m.Cgroups = own
	cmd := exec.Command("sh", "-c", "trap '' TERM HUP INT; echo up; sleep 1000 & exec sleep 1000")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)),
		0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- cmd.Wait() }()
	if err := m.Clean(id); err != nil || exists(dir) || exists(filepath.Dir(dir)) {
		t.Errorf("clean: %v, there %v", err, exists(dir))
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended with %v", err)
	}
}

// A guard takes nothing but a session's name.
func TestGuardMain(t *testing.T) {
	for _, args := range [][]string{nil, {"../../etc"}, {"0123456789AB"}, {id, id}} {
		var errs bytes.Buffer
		if code := Main(args, strings.NewReader(""), &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%q: %d, %s", args, code, errs.String())
		}
	}
}

// DA-09: sessions are listed by their records; what is no record is nothing.
func TestSessions(t *testing.T) {
	m := machine(t)
	if err := errors.Join(os.WriteFile(m.Record(id), []byte(`{"id":"`+id+`","target":"docker:web"}`), 0o600),
		os.MkdirAll(m.Dir("ffffffffffff"), 0o700), os.WriteFile(m.Record("ffffffffffff"), []byte(`{`), 0o600),
		os.MkdirAll(m.Dir("other"), 0o700), os.WriteFile(m.Record("other"), []byte(`{"id":"other"}`),
			0o600)); err != nil {
		t.Fatal(err)
	}
	all, err := m.Sessions()
	if err != nil || len(all) != 1 || all[0].Target != "docker:web" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := m.Stop(all[0], "ann"); err != nil || m.StoppedBy(id) != "ann" {
		t.Errorf("stopped by %q, %v", m.StoppedBy(id), err)
	}
	if err := m.Stop(Record{ID: "000000000000"}, "ann"); err != nil || exists(m.Dir("000000000000")) {
		t.Errorf("one that has just ended: %v", err)
	}
}

// DA-09: to stop a session is to tell its command, which is the process that holds the lock: another one that has its
// number is left alone.
func TestStop(t *testing.T) {
	m := machine(t)
	start := func(lock *os.File) (*exec.Cmd, chan error) {
		cmd := exec.Command("sh", "-c", "echo up; exec sleep 1000")
		if lock != nil {
			cmd.ExtraFiles = []*os.File{lock}
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		return cmd, ended
	}
	lock, err := os.Create(m.Lock(id))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	command, ended := start(lock)
	stranger, other := start(nil)
	if err := m.Stop(Record{ID: id, PID: stranger.Process.Pid}, "ann"); err != nil {
		t.Error(err)
	}
	if err := m.Stop(Record{ID: id, PID: command.Process.Pid}, "ann"); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the command ended with %v", err)
	}
	if err := stranger.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := <-other; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("a stranger ended with %v", err)
	}
}

// DA-09: those that a session's first process is to reap are killed before it.
func TestApart(t *testing.T) {
	parents := map[int]int{10: 1, 11: 10, 12: 11, 13: 10, 14: 2}
	inner, outer := apart([]int{10, 11, 12, 13, 14}, func(pid int) int { return parents[pid] })
	if !slices.Equal(inner, []int{11, 12, 13}) || !slices.Equal(outer, []int{10, 14}) {
		t.Errorf("%v, %v", inner, outer)
	}
	if got := parentOf(os.Getpid()); got != os.Getppid() {
		t.Errorf("parent %d, want %d", got, os.Getppid())
	}
	if got := parentOf(-1); got != 0 {
		t.Errorf("of nobody: %d", got)
	}
}

// DA-04: what the kernel says of processes that it has killed for want of memory, in cgroups of both versions.
func TestMemoryKills(t *testing.T) {
	m := machine(t)
	is := func(want int) {
		t.Helper()
		if got := m.MemoryKills(id); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
	is(0)
	for dir, file := range map[string]string{"": "memory.events", "memory": "memory.oom_control"} {
		at := filepath.Join(m.Cgroups, dir, name, id)
		text := "low 0\nmax 12\noom 2\noom_kill 2\noom_group_kill 0\n"
		if dir != "" {
			text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
		}
		if err := errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, file), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		is(killsIn(text))
		if err := os.RemoveAll(filepath.Join(m.Cgroups, dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if killsIn("oom_kill 2") != 2 || killsIn("oom_kill x\n") != 0 {
		t.Error("killsIn")
	}
}
