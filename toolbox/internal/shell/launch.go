// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// slowStart is after what time a program that has not started yet is looked at.
const slowStart = 20 * time.Millisecond

// launch starts a program. Until it runs, the thread that starts it is held up (vfork): if Ctrl-Z stops it before, it
// and the shell would wait for one another for ever. It is continued then, and stopped once it is the program. The
// caller holds mu.
func (j *jobs) launch(cmd *exec.Cmd) error {
	over, freed := make(chan struct{}), map[int]bool{}
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(slowStart): // nobody tells of it
			}
			for _, pid := range stoppedInStart() {
				freed[pid] = true
				_ = unix.Kill(pid, unix.SIGCONT)
			}
		}
	})
	err := cmd.Start()
	close(over)
	looking.Wait()
	if err == nil && freed[cmd.Process.Pid] {
		_ = unix.Kill(cmd.Process.Pid, unix.SIGTSTP)
	}
	return err
}

// stoppedInStart are the children of this process that are stopped and have not become a program yet: they have the
// memory of this process still. A child that is a program, or that came as an orphan, may have been stopped on purpose.
func stoppedInStart() (pids []int) {
	own, ok := readStat("/proc/self")
	if !ok {
		return nil
	}
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(text)) {
			if s, ok := readStat("/proc/" + word); ok && s.state == "T" && s.stack == own.stack {
				pids = append(pids, s.pid)
			}
		}
	}
	return pids
}

// stopInOrder has a shell without job control, which Ctrl-Z stops with what it has started, stop only while it is not
// starting anything: a program that is being started could not be freed by a shell that is stopped (launch).
func (s *session) stopInOrder() {
	if signal.Ignored(unix.SIGTSTP) {
		return
	}
	s.asked = make(chan os.Signal, 1)
	signal.Notify(s.asked, unix.SIGTSTP)
	go s.stopWhenAsked(stopThread)
}

// stopWhenAsked stops this process once for all that asked for it before it is stopped, as the kernel does: one that
// were left would stop it when it has been continued.
func (s *session) stopWhenAsked(stop func()) {
	for range s.asked {
		s.jobs.mu.Lock()
		s.stopNow(stop)
		s.jobs.mu.Unlock()
	}
}

// forgetAsked takes what has come out of the channel. It is called when nothing more is caught.
func (s *session) forgetAsked() {
	more := make(chan os.Signal, 1)
	signal.Notify(more, unix.SIGTSTP)
	signal.Stop(more) // returns once all that came before is handed on
	select {
	case <-s.asked:
	default:
	}
}

// stopThread sends this thread SIGTSTP.
func stopThread() {
	runtime.LockOSThread() // a signal to the thread that sends it has come when the call returns
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGTSTP)
}

// stopNow stops this process as SIGTSTP does that is not caught, and returns when it is continued: at once where there
// is nobody to continue it, as in a container's first process group.
func (s *session) stopNow(stop func()) {
	s.traps.mu.Lock()
	defer s.traps.mu.Unlock()
	if _, trapped := s.traps.of[unix.SIGTSTP]; trapped {
		return
	}
	was, err := setAction(unix.SIGTSTP, action{})
	if err != nil {
		return
	}
	s.forgetAsked()
	stop()
	_, _ = setAction(unix.SIGTSTP, was) // what could be set can be set back
}

// action is what is done about a signal, as the kernel has it. The zero value is what the kernel does by itself.
// Package signal cannot go back to that: after signal.Reset a signal that stops is caught and dropped.
type action struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

func setAction(sig unix.Signal, to action) (was action, err error) {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&to)),
		uintptr(unsafe.Pointer(&was)), unsafe.Sizeof(to.mask), 0, 0)
	if errno != 0 {
		return action{}, errno
	}
	return was, nil
}
