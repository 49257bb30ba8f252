// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stall lets a shim stand still for a while, as one does that waits for a disk (RS-05).
func (s *storm) stall() {
	pids, err := s.Processes("shim")
	if err != nil {
		s.t.Fatal(err)
	}
	if len(pids) == 0 {
		return
	}
	pid, long := pids[s.rand.IntN(len(pids))], time.Duration(500+s.rand.IntN(3000))*time.Millisecond
	if syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return // it has ended
	}
	s.did["stall shim"]++
	s.aside.Go(func() {
		time.Sleep(long)
		_ = syscall.Kill(pid, syscall.SIGCONT) // it may have been killed meanwhile
	})
}

// look debugs a pod, or looks at its containers' files, which the storm may end at any moment: what it prints is of no interest.
func (s *storm) look() {
	pod := s.now[s.rand.IntN(slots)].pod.Name
	args := []string{"debug", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, pod, "--", "true"}
	if s.rand.IntN(2) == 0 {
		args = []string{"exec", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-m", "wherry.dev/toolbox", pod, "--", "ls", "/c"}
	}
	s.did[args[0]]++
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), time.Minute)
	s.aside.Go(func() {
		defer cancel()
		_ = exec.CommandContext(ctx, s.World.Wherry, args...).Run()
	})
}

// descriptors counts those of the server.
func (s *storm) descriptors() int {
	s.t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(all)
}

// spareDescriptors is how many more a server may have than a fresh one: idle connections of clients, and what is being tidied up.
const spareDescriptors = 40

// flat holds the server's descriptors against those of a fresh one (RS-01). Its memory is told, not judged: the collector has a say in it.
func (s *storm) flat() {
	for range 300 { // connections take their time to be idle
		if s.descriptors() <= s.fresh+spareDescriptors {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if n := s.descriptors(); n > s.fresh+spareDescriptors {
		s.t.Errorf("RS-01 the server has %d descriptors without any pod, a fresh one %d", n, s.fresh)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS") {
			s.t.Logf("descriptors: %d, fresh %d; memory %s", s.descriptors(), s.fresh, strings.TrimSpace(strings.TrimPrefix(line, "VmRSS:")))
		}
	}
}
