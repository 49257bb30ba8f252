// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// A signal that the shell sends itself may have its trap run by another command before kill goes on: kill is in the first
// part of a pipeline, and the last one is run by the shell itself. It waited for the signal for ever.
func TestKillWhoseSignalIsTaken(t *testing.T) {
	s := &session{jobs: newJobs(), traps: newTraps(func() {})}
	s.putTrap(unix.SIGUSR1, trap{text: ":", code: ":"}, true)
	defer s.putTrap(unix.SIGUSR1, trap{}, false)
	s.traps.mu.Lock() // as the other command does, which takes the signal at once
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.kill(interp.HandlerContext{}, []string{"-USR1", strconv.Itoa(os.Getpid())})
	}()
	<-s.traps.came
	s.traps.mu.Unlock()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("kill waits for a signal that has come")
	}
}

// reader is where a command's output goes: to another part of the pipeline, which needs a lock to start its program.
type reader struct {
	t    *testing.T
	lock *sync.Mutex
	what string
	got  bool
}

func (r *reader) Write(p []byte) (int, error) {
	r.got = r.got || len(p) > 0
	if !r.lock.TryLock() {
		r.t.Errorf("%s prints %q with the lock held", r.what, p)
		return len(p), nil
	}
	r.lock.Unlock()
	return len(p), nil
}

// What a command prints with a lock held would be waited for by whoever waits for the lock, and the other way round.
func TestPrintsUnlocked(t *testing.T) {
	s := &session{jobs: newJobs(), traps: newTraps(func() {})}
	s.traps.of[unix.SIGUSR1] = trap{text: "echo T"}
	s.jobs.number(&job{procs: []*process{{pid: 1}}, text: "sleep 60"})
	for _, line := range [][]string{{"jobs"}, {"jobs", "-p"}, {"jobs", "-z"}, {"fg"}, {"bg"}, {"disown", "%9"}, {"kill", "%9"},
		{"kill", "-NOPE", "1"}, {"wait", "%9"}} {
		r := &reader{t: t, lock: &s.jobs.mu, what: line[0]}
		hc := interp.HandlerContext{Stdout: r, Stderr: r}
		_ = s.inner(context.Background(), hc, line[0], line[1:]) // how it ends is not the question
		if !r.got {
			t.Errorf("%q prints nothing", line)
		}
	}
	r := &reader{t: t, lock: &s.traps.mu, what: "trap"}
	if s.showTraps(interp.HandlerContext{Stdout: r, Env: expand.ListEnviron()}, nil); !r.got {
		t.Error("trap prints nothing")
	}
}
