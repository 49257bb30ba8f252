// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// stoppedChild starts a program and stops it.
func stoppedChild(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var status unix.WaitStatus
	if err := unix.Kill(cmd.Process.Pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatal(err, status)
	}
	return cmd
}

// DC-01: a stopped job that was killed is not stopped any more, although its watcher has not seen its end yet: wait waits for it and the shell
// may leave without a warning.
func TestStoppedJobThatIsKilled(t *testing.T) {
	child := stoppedChild(t)
	j := newJobs()
	j.number(&job{procs: []*process{{pid: child.Process.Pid, state: stopped}}})
	if !j.stopped() {
		t.Error("a stopped job does not count as stopped")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if j.stopped() {
		t.Error("a killed job counts as stopped")
	}
}

// DC-01: only a child that is not a program yet was stopped in its start; what somebody stopped on purpose stays stopped.
func TestStoppedOnPurpose(t *testing.T) {
	child := stoppedChild(t)
	if pids := stoppedInStart(); slices.Contains(pids, child.Process.Pid) {
		t.Error("a stopped program counts as one that is being started")
	}
}
