// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killed is the exit code of a command that was killed.
const killed = 128 + int(syscall.SIGKILL)

// gone reports whether the target's process has ended, which ends a debugger in its PID namespace too, or is about to.
// The first process of a namespace takes everything else in it along before it is seen to have ended itself: a debugger
// may be over by then, and the session that hears of it.
func (s *session) gone() bool {
	return s.held != nil && (over(s.held.pidfd, 0) == nil || s.held.exiting())
}

// exiting reports whether all threads of a process are on their way out. Another process that has its number by now
// says nothing wrong: then this one has ended.
func (h *held) exiting() bool {
	stats, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(h.pid), "task", "*", "stat"))
	if err != nil {
		return false
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err == nil && !isExiting(string(text)) { // one that is not there any more has ended
			return false
		}
	}
	return len(stats) > 0 || over(h.pidfd, 0) == nil
}

const (
	flagsField = 9   // of /proc/PID/stat, from 1
	pfExiting  = 0x4 // PF_EXITING of the kernel
)

// isExiting reads a thread's flags in its stat file. (Pure.)
func isExiting(stat string) bool {
	name := strings.LastIndexByte(stat, ')') // the second field, which may have any character in it
	fields := strings.Fields(stat[name+1:])
	if name < 0 || len(fields) < flagsField-2 {
		return false
	}
	flags, err := strconv.ParseUint(fields[flagsField-3], 10, 64)
	return err == nil && flags&pfExiting != 0
}

// over waits until a process has ended, for a time of poll's.
func over(pidfd, milliseconds int) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, milliseconds)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return errors.New("it goes on")
		}
		return nil
	}
}

// exitOf is the exit code that a shell would give.
func exitOf(e *exec.ExitError) int {
	if e == nil {
		return 0
	}
	if st, ok := e.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return 128 + int(st.Signal())
	}
	return e.ExitCode()
}

// Signalled is the cause of a context that has ended because a signal has asked this process to end, which may come
// before the session listens.
type Signalled struct{ Signal syscall.Signal }

func (t *Signalled) Error() string { return fmt.Sprintf("wherry was told to end (%s)", t.Signal) }

func (t *Signalled) ended() (code int, why *Ended) { return 128 + int(t.Signal), &Ended{t.Error()} }

// untilSignal is a context that ends when a signal asks this process to end, with the cause [Signalled].
func untilSignal(parent context.Context) (ctx context.Context, stopListening func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		select {
		case sig := <-signals:
			cancel(&Signalled{sig.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// calledOff is what a session has come to whose context has ended by a cause that has words; else why is nil.
func calledOff(ctx context.Context) (code int, why *Ended) {
	cause := context.Cause(ctx)
	if signalled := (*Signalled)(nil); errors.As(cause, &signalled) {
		return signalled.ended()
	}
	if errors.As(cause, &why) {
		return killed, why
	}
	return 0, nil
}

// prepared bounds what comes before the command; 0: it does not. ready ends the bound; it can be repeated.
func prepared(ctx context.Context, most time.Duration) (bounded context.Context, ready func()) {
	if most == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(most, func() {
		cancel(&Ended{fmt.Sprintf("what its command runs from was not there within %s", most)})
	})
	return ctx, func() { late.Stop() }
}

// withoutKeeper is why a session has ended whose keeper has. (Pure.)
func (r Request) withoutKeeper() *Ended {
	if r.KeeperName != "" {
		return &Ended{fmt.Sprintf("container %s, in whose network it was, has ended", r.KeeperName)}
	}
	return &Ended{"its pod has ended"}
}

// endEarly ends the session at its time limit, or when a signal asks this process to end. What it returns stops that,
// and reports whether it was so, with the exit code.
func (s *session) endEarly(ctx context.Context, runc int) (was func() (int, error)) {
	signals := make(chan os.Signal, 4)
	// A terminal sends its signals to the command too, which decides what they mean to it.
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	var limit <-chan time.Time
	if s.req.TTL > 0 {
		limit = time.After(s.req.TTL)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	podGone, forget := s.keeperGone()
	code, why := 0, error(nil)
	go func() {
		defer close(stopped)
		for why == nil {
			select {
			case sig := <-signals:
				if sig == syscall.SIGINT || sig == syscall.SIGQUIT {
					continue
				}
				code, why = (&Signalled{sig.(syscall.Signal)}).ended()
			case <-limit:
				code, why = killed, &Ended{fmt.Sprintf("its time limit of %s is over", s.req.TTL)}
			case <-podGone:
				code, why = killed, s.req.withoutKeeper()
			case <-ctx.Done():
				code, why = killed, &Ended{"it was called off"}
				if known, words := calledOff(ctx); words != nil {
					code, why = known, words
				}
			case <-stop:
				return
			}
		}
		s.endNow(runc)
	}()
	return func() (int, error) {
		close(stop)
		<-stopped
		forget()
		signal.Stop(signals)
		return code, why
	}
}

// keeperGone signals when the process that stands for the pod has ended, until that is to be forgotten.
func (s *session) keeperGone() (gone <-chan struct{}, forget func()) {
	if s.keeper == nil {
		return nil, func() {}
	}
	r, w, err := os.Pipe()
	if err != nil {
		s.note("the end of the pod is not noticed: " + err.Error())
		return nil, func() {}
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		fds := []unix.PollFd{{Fd: int32(s.keeper.pidfd), Events: unix.POLLIN}, {Fd: int32(r.Fd()), Events: unix.POLLIN}}
		for {
			_, err := unix.Poll(fds, -1)
			if err == unix.EINTR {
				continue
			}
			if err == nil && fds[0].Revents != 0 {
				close(ended)
			}
			return
		}
	}()
	return ended, func() { w.Close(); <-done; r.Close() }
}

// endNow ends what runs. First runc, and it is waited for: it may be about to start what the guard then does not see.
func (s *session) endNow(runc int) {
	_ = unix.PidfdSendSignal(runc, unix.SIGKILL, nil, 0) // it may have ended
	_ = over(runc, -1)
	if err := s.machine.End(s.id); err != nil {
		s.note(err.Error()) // the guard tries again
	}
}
