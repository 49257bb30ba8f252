// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestFullDiskNothingRestarts: SC-19 holds on a disk on which nothing more can be written. The server is killed, stopped and started there:
// no init that has completed runs again, nothing that runs is touched, and a pod in the midst of its inits goes on where it was as soon as
// there is room. After a power cut on a full disk its order is kept from the start.
func TestFullDiskNothingRestarts(t *testing.T) {
	t.Parallel()
	// No pod is to be evicted: none of them has filled it.
	srv := onSmallDisk(t, "700m", "--eviction-hard", "memory.available<100Mi")
	s := srv.Space(t)
	run, begun := s.NewStage(t), s.NewStage(t) // whose journals are not on the disk
	s.Create(WithInit(run.Pod("run", run.Act("main")), run.Act("init", "-for", "1ms"), Sidecar(run.Act("side"))))
	s.Create(WithInit(begun.Pod("begun", begun.Act("main")), begun.Act("init-1", "-for", "1ms"), begun.Act("init-2", "-until")))
	before := s.WaitReady("run")
	run.AwaitUp(before)
	s.Wait("begun", "be at its second init", func(p *corev1.Pod) bool { c := Status(p, "init-2"); return c != nil && c.State.Running != nil })
	begun.Await("init-2", "start", 1)

	full := filepath.Join(filepath.Dir(srv.DataDir), "full")
	fillUp(t, full)
	note := func(what string) {
		for _, st := range []*Stage{run, begun} {
			st.Note(what)
		}
	}
	untouched := func(after string) {
		t.Helper()
		s.WaitReady("run")
		if now := s.Get("run"); facts(now) != facts(before) {
			t.Errorf("SC-19 %s on a full disk, the pod is\n  %s\nit was\n  %s", after, facts(now), facts(before))
		}
	}
	srv.Kill()
	note("killed")
	if err := srv.Start(t.Context()); err != nil {
		t.Fatalf("SC-19 killed, on a full disk: %v\n%s", err, srv.LogTail(20))
	}
	untouched("killed")
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	note("stopped")
	// Without the room that it had given up, which took what was left of the reserve: it cannot start, and touches nothing.
	fillUp(t, full)
	if err := srv.Start(t.Context()); err == nil {
		t.Log("it starts without any room at all")
		untouched("stopped")
		srv.Kill()
	} else if log := srv.LogTail(3); !strings.Contains(log, "free some space") && !strings.Contains(log, "are needed") {
		t.Errorf("RS-02 what it says without any room: %s", log)
	}
	// What was cut off of the store's log is mended in a copy, which is 64 MiB.
	if err := os.Truncate(full, size(t, full)-100<<20); err != nil {
		t.Fatal(err)
	}
	if err := srv.Start(t.Context()); err != nil {
		t.Fatalf("SC-19 with a little room: %v\n%s", err, srv.LogTail(20))
	}
	untouched("stopped")
	begun.Set("init-2", "go") // which ends while nothing of it can be written down
	begun.Await("init-2", "end", 1)
	srv.Kill()
	note("killed again")
	if err := srv.Start(t.Context()); err != nil {
		t.Fatalf("SC-19 killed again, on a full disk: %v\n%s", err, srv.LogTail(20))
	}
	remove(t, full)
	begun.AwaitUp(s.WaitReady("begun"))
	for _, name := range []string{"init-1", "init-2", "main"} {
		begun.Play().Happened("SC-19 on a full disk", name, "start", 1)
	}
	for _, name := range []string{"init", "side", "main"} {
		run.Play().Happened("SC-19 on a full disk", name, "start", 1)
	}

	fillUp(t, full)
	if err := srv.PowerOff(); err != nil {
		t.Fatal(err)
	}
	note("reboot")
	begun.Clear("init-2", "go")
	if err := srv.Start(t.Context()); err == nil {
		t.Log("it starts on what the power cut left free")
		remove(t, full)
	} else { // there is no reserve left, and it says so
		remove(t, full)
		if err := srv.Start(t.Context()); err != nil {
			t.Fatalf("SC-19 after a power cut on a full disk: %v\n%s", err, srv.LogTail(20))
		}
	}
	begun.Await("init-2", "start", 2)
	begun.Set("init-2", "go")
	begun.Await("main", "start", 2).After("reboot").InOrder("SC-19 after a power cut", "init-1 start", "init-1 end", "init-2 start", "init-2 end",
		"main start")
	run.Await("main", "start", 2).After("reboot").InOrder("SC-19 after a power cut", "init start", "init end", "side start", "main start")
}

// fillUp writes a file until nothing more fits on its disk. What was there of it stays.
func fillUp(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(f, zeros{})
	if cerr := f.Close(); !errors.Is(err, syscall.ENOSPC) || cerr != nil {
		t.Fatalf("the disk does not get full: %v, %v", err, cerr)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
