// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
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

// look debugs a pod, looks at its containers' files, copies or follows, while the storm may end the pod at any moment: what is printed is
// of no interest.
func (s *storm) look() {
	pod := s.now[s.rand.IntN(slots)].pod
	main := pod.Spec.Containers[0].Name
	looks := [][]string{
		{"debug", pod.Name, "--", "true"},
		{"exec", "-m", "wherry.dev/toolbox", pod.Name, "--", "ls", "/c"},
		{"cp", pod.Name + ":/etc/passwd", "-", "-c", main},
		{"kubectl", "logs", "-f", pod.Name, "-c", main},
		{"kubectl", "exec", pod.Name, "-c", main, "--", "/tool", "sleep"},
	}
	look := looks[s.rand.IntN(len(looks))]
	what := strings.Join(look[:2], " ")
	if look[0] != "kubectl" {
		what = look[0]
	}
	s.did[what]++
	args := append([]string{}, look...)
	at := []string{"--kubeconfig", s.Kubeconfig, "-n", s.Namespace}
	if look[0] == "kubectl" {
		args = append(append([]string{"kubectl"}, at...), look[1:]...)
	} else {
		args = append(append([]string{look[0]}, at...), look[1:]...)
	}
	long := time.Minute
	if look[0] == "kubectl" { // such a client never ends by itself: it is killed in the middle
		long = time.Duration(1+s.rand.IntN(10)) * time.Second
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), long)
	s.aside.Go(func() {
		defer cancel()
		_ = s.Wherry(ctx, args...).Run()
	})
}
