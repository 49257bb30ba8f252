// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel gives orphans to the first process of their PID namespace. Where that is a container's program, which does
// not expect them, they would stay there as zombies. So a shell that was put into a PID namespace takes them itself,
// and one that is a container's first process takes what it leaves behind with it.

// entered reports whether this process was put into its PID namespace from outside: its parent cannot be seen.
func entered() bool { return os.Getppid() == 0 }

// guard makes the shell the one that orphans come to. The function returned ends what is left, if this is the first
// process of a container.
func (s *session) guard() (leave func()) {
	if !entered() {
		return func() {}
	}
	init := os.Getpid() == 1
	if !init {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return func() {}
		}
	}
	s.jobs.adopt()
	leave = func() {
		if !init && first() { // the end of an init is the end of all
			s.jobs.sweep()
		}
	}
	s.ending = make(chan os.Signal, 1)
	signal.Notify(s.ending, unix.SIGTERM, unix.SIGHUP)
	go func() {
		for got := range s.ending {
			if sig, ok := got.(syscall.Signal); ok && !s.traps.has(sig) {
				leave()
				os.Exit(128 + int(sig))
			}
		}
	}()
	return leave
}

// leavesBy tells whether a signal ends this process by what guard has begun.
func (s *session) leavesBy(sig syscall.Signal) bool {
	return s.ending != nil && (sig == unix.SIGTERM || sig == unix.SIGHUP) && !s.traps.has(sig)
}

// send sends a signal. One to this process itself goes to this thread, where it has done what it does when the call is
// over: another thread would take it while the next command runs already. If it has a trap, whoever looks next finds it
// (traps.look); to wait for that here could be for ever, as another part of a pipeline may look first.
func send(pid int, sig syscall.Signal) error {
	if pid != os.Getpid() {
		return unix.Kill(pid, sig)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return unix.Tgkill(pid, unix.Gettid(), sig)
}

// stat is what /proc says of a process.
type stat struct {
	pid, parent int
	state       string // as ps shows it
	start       uint64 // in ticks since the machine's
	stack       uint64 // where its first stack begins: at random, and anew with each program that the process becomes
}

func stats() (out []stat) {
	list, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, dir := range list {
		if s, ok := readStat(dir); ok {
			out = append(out, s)
		}
	}
	return out
}

// readStat reads what a folder of /proc says; false: the process has ended.
func readStat(dir string) (s stat, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return stat{}, false
	}
	_, _ = fmt.Sscan(string(text), &s.pid)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // names may have blanks
	if len(fields) < 26 {
		return stat{}, false
	}
	s.state = fields[0]
	_, _ = fmt.Sscan(fields[1], &s.parent)
	_, _ = fmt.Sscan(fields[19], &s.start)
	_, _ = fmt.Sscan(fields[25], &s.stack)
	return s, true
}

// first reports whether this is the first process of its container, and not one that came later by exec. Processes of a
// container are in one cgroup.
func first() bool {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return false
	}
	list := stats()
	at := slices.IndexFunc(list, func(s stat) bool { return s.pid == os.Getpid() })
	return at >= 0 && !slices.ContainsFunc(list, func(s stat) bool {
		if s.parent != 0 || s.pid == os.Getpid() || s.start > list[at].start {
			return false
		}
		theirs, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", s.pid))
		return err == nil && bytes.Equal(own, theirs)
	})
}

// sweep ends all descendants and waits until they are gone. They have half a second to end in order.
func (j *jobs) sweep() {
	sig, over := unix.SIGTERM, false
	later := func(after time.Duration, f func()) *time.Timer {
		return time.AfterFunc(after, func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			f()
			j.changed.Broadcast()
		})
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	defer later(500*time.Millisecond, func() { sig = unix.SIGKILL }).Stop()
	defer later(5*time.Second, func() { over = true }).Stop() // what the kernel holds on to is not waited for
	told := map[int]syscall.Signal{}
	for !over {
		left := 0
		for _, s := range stats() {
			if s.parent != os.Getpid() {
				continue
			}
			if left++; told[s.pid] != sig {
				told[s.pid] = sig
				_ = unix.Kill(s.pid, sig)
				_ = unix.Kill(s.pid, unix.SIGCONT)
			}
		}
		if left == 0 {
			return
		}
		j.changed.Wait()
	}
}
