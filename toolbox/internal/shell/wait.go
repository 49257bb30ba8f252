// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// wait waits for all jobs, for those named, or with -n for one. A signal with a trap ends it, and so does Ctrl-C.
func (s *session) wait(ctx context.Context, hc interp.HandlerContext, args []string) int {
	j := s.jobs
	stop := context.AfterFunc(ctx, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.changed.Broadcast()
	})
	defer stop()
	j.mu.Lock()
	defer j.mu.Unlock()
	one := len(args) > 0 && args[0] == "-n"
	if one {
		args = args[1:]
	}
	var of []*job
	for _, a := range args {
		b, err := j.find(a)
		if pid, e := strconv.Atoi(a); e == nil {
			b, err = j.withID(pid)
		}
		if err != nil {
			fmt.Fprintf(hc.Stderr, "wait: %s: %v\n", a, err)
			return 127
		}
		of = append(of, b)
	}
	all := len(of) == 0
	if all {
		of = j.owned(s.runnerOf(hc), s.runner)
	}
	var named *job // whose status counts: that of the last operand (POSIX)
	if !all {
		named = of[len(of)-1]
	}
	code := 0
	for len(of) > 0 {
		at := slices.IndexFunc(of, func(b *job) bool { return b.state() == ended })
		switch {
		case at >= 0:
			if j.keep(of[at], all); one || of[at] == named {
				code = codeOf(of[at].last().status)
			}
			if of = slices.Delete(of, at, at+1); one {
				return code
			}
		case ctx.Err() != nil:
			return 130
		case s.traps.first(below(hc)) != 0:
			return 128 + int(s.traps.first(below(hc)))
		case !slices.ContainsFunc(of, func(b *job) bool { return !b.stands() }):
			return 128 + int(unix.SIGTSTP) // stopped ones would be waited for in vain
		default:
			j.changed.Wait()
		}
	}
	return code
}

// give notes that a job is a subshell's.
func (j *jobs) give(b *job, to *interp.Runner) {
	j.mu.Lock()
	defer j.mu.Unlock()
	b.of = to
}

// owned are the jobs that a shell, or one of its subshells, has put into the background: nobody waits for another's.
// The lock is held.
func (j *jobs) owned(by, shell *interp.Runner) []*job {
	return slices.DeleteFunc(slices.Clone(j.list), func(b *job) bool { return cmp.Or(b.of, shell) != by })
}

// keep forgets a job that was waited for, but for how it ended, for a while, if it was asked for. The lock is held.
func (j *jobs) keep(b *job, all bool) {
	if j.forget(b); !all {
		j.past = append(j.past[max(0, len(j.past)-100):], b)
	}
}

// withID finds the job of a process. The lock is held.
func (j *jobs) withID(pid int) (*job, error) {
	for _, b := range slices.Concat(j.list, j.past) {
		for _, p := range b.procs {
			if p.pid == pid {
				return b, nil
			}
		}
	}
	return nil, errors.New("it is not a child of this shell")
}
