// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// signal sends a signal to a container's first process, from the node: a container's own kill cannot kill its PID 1.
func (s *Space) signal(pod, container, sig string) {
	s.T.Helper()
	pid := s.PIDOf(pod, container)
	if err := syscall.Kill(pid, map[string]syscall.Signal{"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[sig]); err != nil {
		s.T.Fatalf("signal %s to container %s of %s: %v", sig, container, pod, err)
	}
}

// PIDOf finds a container's first process on the node, by the container's id in its cgroup: it is the process whose parent is
// not in that cgroup.
func (s *Space) PIDOf(pod, container string) int {
	s.T.Helper()
	_, id, _ := strings.Cut(Status(s.Get(pod), container).ContainerID, "://")
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		s.T.Fatal(err)
	}
	inside := map[int]int{} // pid to parent
	for _, dir := range dirs {
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup")) // an error: the process has ended
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		_, rest, ok := strings.Cut(string(stat), ") ")
		if !ok || id == "" || !strings.Contains(string(groups), id) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir)) // the pattern lets only digits through
		parent, err := strconv.Atoi(strings.Fields(rest)[1])
		if err != nil {
			s.T.Fatalf("%s/stat: %v", dir, err)
		}
		inside[pid] = parent
	}
	for pid, parent := range inside {
		if _, ok := inside[parent]; !ok {
			return pid
		}
	}
	s.T.Fatalf("no process of container %s of %s (%s)", container, pod, id)
	return 0
}

// kill ends a process that is no child of ours.
func kill(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
