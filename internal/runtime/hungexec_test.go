// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// PL-10, RS-05: a container is killed when its time is over, also while a program that was to enter it hangs, as a
// hook's may on a machine that is busy: its shim tells nobody of the container's end before that program has ended.
//
// ATTACK C38.
func TestStopWhileAnExecHangs(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p := runPod(t, r)
	id := p.run("main", []string{"wait"})
	state := filepath.Join(r.dirs.runc, Namespace, id, "state.json")
	if err := os.Rename(state, state+".real"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(state, 0o600); err != nil { // nobody writes it: who opens it to read hangs
		t.Fatal(err)
	}
	hook := make(chan error, 1)
	go func() {
		_, err := p.cri.ExecSync(context.WithoutCancel(t.Context()),
			&criapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"/box", "wait"}})
		hook <- err
	}()
	eventually(t, "runc hangs on its way into the container", func() bool {
		return opening(filepath.Join(r.dirs.bin, bundle.Runc), []string{"exec", id}, state)
	})
	if err := os.Rename(state+".real", state); err != nil { // others may read again
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := p.cri.StopContainer(ctx, &criapi.StopContainerRequest{ContainerId: id}); err != nil {
		t.Fatalf("StopContainer: %v", err)
	}
	if err := <-hook; err == nil {
		t.Error("what hung has entered the container")
	}
	if s := p.status(id); s.State != criapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("it is %v", s.State)
	}
	p.stop()
}

// opening tells whether a process of a program, with these among its arguments, is opening a file at this moment, and
// waits for that. That it runs says less: it may not have come to the file yet, and when it does, the file may be
// another one.
func opening(executable string, args []string, file string) bool {
	exes, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return false
	}
	for _, exe := range exes {
		if path, err := os.Readlink(exe); err != nil || path != executable {
			continue
		}
		dir := filepath.Dir(exe)
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if words := strings.Split(string(line), "\x00"); err != nil ||
			slices.ContainsFunc(args, func(a string) bool { return !slices.Contains(words, a) }) {
			continue
		}
		threads, err := filepath.Glob(filepath.Join(dir, "task/[0-9]*"))
		if err != nil {
			return false
		}
		if slices.ContainsFunc(threads, func(thread string) bool { return threadOpening(thread, file) }) {
			return true
		}
	}
	return false
}

// threadOpening reads what system call a thread waits in, and the name that it was called with.
func threadOpening(thread, file string) bool {
	call, err := os.ReadFile(filepath.Join(thread, "syscall"))
	if err != nil {
		return false
	}
	// the call's number, the folder that the name is relative to, where the name is
	words := strings.Fields(string(call))
	if len(words) < 3 || words[0] != strconv.Itoa(unix.SYS_OPENAT) {
		return false
	}
	at, err := strconv.ParseInt(words[2], 0, 64)
	if err != nil {
		return false
	}
	mem, err := os.Open(filepath.Join(thread, "mem"))
	if err != nil {
		return false
	}
	defer mem.Close()
	name := make([]byte, len(file)+1)
	n, _ := mem.ReadAt(name, at)
	return string(name[:n]) == file+"\x00"
}
