// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The pause program, as PID 1 of a namespace, reaps what is left to it and ends on SIGTERM and SIGINT.
func TestPauseProgram(t *testing.T) {
	needRoot(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc")
	}
	bin := filepath.Join(t.TempDir(), "pause")
	if out, err := exec.Command("gcc", "-static", "-Os", "-o", bin, "pause/pause.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			// The shell leaves two children behind when it becomes pause: one that has ended, one that ends later.
			cmd := exec.Command("/bin/sh", "-c", "true & read line <&0 & sleep 0.05; exec "+bin)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			proc := fmt.Sprintf("/proc/%d", cmd.Process.Pid)
			eventually(t, "the shell becomes pause", func() bool {
				exe, _ := os.Readlink(proc + "/exe")
				return exe == bin
			})
			stdin.Close() // ends the second child
			eventually(t, "its children are reaped", func() bool {
				children, err := os.ReadFile(fmt.Sprintf("%s/task/%d/children", proc, cmd.Process.Pid))
				return err == nil && strings.TrimSpace(string(children)) == ""
			})
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			// The kernel may leave children out of its list, so pause may not have come as far as it seems; and until it waits for
			// signals, PID 1 does not get them. So it is told again.
			for tries := 0; ; tries++ {
				_ = cmd.Process.Signal(sig) // it may have ended
				select {
				case err := <-ended:
					if err != nil {
						t.Errorf("after %v: %v, want exit code 0", sig, err)
					}
					return
				case <-time.After(100 * time.Millisecond):
					if tries > 100 {
						t.Fatalf("it does not end on %v", sig)
					}
				}
			}
		})
	}
}
