// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// DA-09: a debugger that has ended with its target says so, also when the target is not seen to have ended yet. The
// first process of a namespace waits until all others in it are gone, and here for one that nobody reaps.
func TestEndsWithItsTarget(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making PID namespaces needs root")
	}
	first := exec.Command("sleep", "1000")
	first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Process.Kill() }()
	debugger, other := exec.Command("sleep", "1000"), exec.Command("sleep", "1000")
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with this function: its children are in another namespace
		namespace, err := os.Open(filepath.Join("/proc", strconv.Itoa(first.Process.Pid), "ns/pid"))
		if err == nil {
			err = errors.Join(unix.Setns(int(namespace.Fd()), unix.CLONE_NEWPID), debugger.Start(), other.Start(),
				namespace.Close())
		}
		started <- err
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	h, err := hold(first.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	s := &session{held: h, req: Request{Target: &engines.Container{Target: target.Target{Engine: target.Docker,
		Name: "web"}}}}
	if code, err := s.outcome(killed, ""); code != killed || err != nil {
		t.Errorf("while its target lives: %d, %v", code, err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := debugger.Wait(); err == nil {
		t.Error("the debugger was not killed")
	}
	if over(h.pidfd, 0) == nil {
		t.Error("the first process has not waited for the other one")
	}
	for _, when := range []string{"about to end", "ended", "reaped"} {
		switch when {
		case "ended":
			_ = other.Wait() // it was killed
			if err := over(h.pidfd, -1); err != nil {
				t.Fatal(err)
			}
		case "reaped":
			_ = first.Wait() // it was killed
		}
		var ended *Ended
		if code, err := s.outcome(killed, ""); code != killed || !errors.As(err, &ended) ||
			!strings.Contains(err.Error(), "docker:web has ended") {
			t.Errorf("its target is %s: %d, %v", when, code, err)
		}
	}
}

// What cannot be read says nothing of an end.
func TestIsExiting(t *testing.T) {
	for stat, want := range map[string]bool{
		"7 (sleep) S 1 7 7 0 -1 4194560 99 0 0 0":        false,
		"7 (sleep) S 1 7 7 0 -1 4194564 99 0 0 0":        true,
		"7 (a) S 1 7 7 0 -1 4 (x) Z 1 7 7 0 -1 0 99 0 0": false,
		"7 (sleep) S 1 7 7 0 -1":                         false,
		"7 (sleep) S 1 7 7 0 -1 x 0":                     false,
		"":                                               false,
	} {
		if got := isExiting(stat); got != want {
			t.Errorf("%q: %v", stat, got)
		}
	}
}
