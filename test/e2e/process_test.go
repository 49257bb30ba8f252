// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pidIn reads the process number from the runtime's verbose information.
func pidIn(t *testing.T, info string) int {
	t.Helper()
	var v struct{ Pid int }
	if err := json.Unmarshal([]byte(info), &v); err != nil || v.Pid == 0 {
		t.Fatalf("no pid in %.200s (%v)", info, err)
	}
	return v.Pid
}

// awaitDeath waits until a process that is not a child of ours has ended.
func awaitDeath(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(Timeout/time.Millisecond))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			t.Fatalf("process %d does not end (%v)", pid, err)
		}
		return
	}
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	after := string(text)[strings.LastIndex(string(text), ")")+2:]
	parent, err := strconv.Atoi(strings.Fields(after)[1])
	if err != nil || parent < 2 {
		t.Fatalf("parent of %d: %d, %v", pid, parent, err)
	}
	return parent
}

// aLittleLater lets a server that was just spawned take its data folder, and then some more time: a spread of moments in its
// start is wanted, not an event.
func (s *Server) aLittleLater(t *testing.T, stage int) {
	t.Helper()
	deadline := time.Now().Add(Timeout)
	for {
		text, err := os.ReadFile(filepath.Join(s.DataDir, "lock"))
		if err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(s.PID()) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not take its data folder; the end of its log:\n%s", s.LogTail(20))
		}
		time.Sleep(5 * time.Millisecond)
	}
	select {
	case <-time.After(time.Duration(stage) * 100 * time.Millisecond):
	case <-s.Done():
	}
}
