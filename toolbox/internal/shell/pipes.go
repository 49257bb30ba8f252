// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// Who writes to a pipe that nobody reads is sent SIGPIPE. In other shells a subshell is a process, which ends by it.
// Here it is a part of this one: so what the shell's commands print is written without the signal, and what it would
// have done is done to the subshell alone.

// put writes what a command of the shell prints. It fails with EPIPE where nobody reads, and no signal comes with it.
func (s *session) put(w io.Writer, text []byte) error {
	f, ok := plain(w).(*os.File)
	if !ok {
		_, err := w.Write(text)
		return err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	write := unix.Write
	if s.traps.has(unix.SIGPIPE) { // otherwise Go's runtime drops it: it is not its own write
		write = writeUnheard
	}
	for len(text) > 0 {
		n, failure := 0, error(nil)
		if err := raw.Write(func(fd uintptr) bool {
			n, failure = write(int(fd), text)
			return !errors.Is(failure, unix.EAGAIN)
		}); err != nil {
			return err
		}
		if failure != nil && !errors.Is(failure, unix.EINTR) {
			return failure
		}
		text = text[max(n, 0):]
	}
	return nil
}

// writeUnheard writes without the signal: this thread, to which the kernel sends it, holds it back and takes it away.
func writeUnheard(fd int, p []byte) (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var hold, old unix.Sigset_t
	hold.Val[0] = 1 << (unix.SIGPIPE - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &hold, &old); err != nil {
		return 0, err
	}
	n, err := unix.Write(fd, p)
	if errors.Is(err, unix.EPIPE) {
		var atOnce unix.Timespec
		_, _, _ = unix.Syscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&hold)), 0,
			uintptr(unsafe.Pointer(&atOnce)), unsafe.Sizeof(action{}.mask), 0, 0)
	}
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) // what could be set can be set back
	return n, err
}

// brokenPipe is how a command ends that has written to a pipe which nobody reads: with it ends the subshell, or the
// shell, unless SIGPIPE is ignored or has a trap there.
func (s *session) brokenPipe(ctx context.Context, hc interp.HandlerContext, name string) error {
	switch {
	case s.traps.catchesPipe(below(hc)):
		_ = s.put(hc.Stderr, fmt.Appendf(nil, "%s: %v\n", name, unix.EPIPE)) // perhaps the same pipe
		return interp.ExitStatus(1)
	case !s.isShell(hc):
		_ = hc.Builtin(ctx, []string{"trap", "-", "ERR"}) // a signal's is not a command's failure
		return hc.Builtin(ctx, []string{"exit", fmt.Sprint(128 + int(unix.SIGPIPE))})
	case s.interactive == nil:
		s.dieOfPipe()
	}
	return interp.ExitStatus(128 + uint8(unix.SIGPIPE)) // somebody sits before it: it goes on
}

// catchesPipe tells whether SIGPIPE is ignored, or has a trap of who has written; that is due then.
func (t *traps) catchesPipe(below bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	trap := t.of[unix.SIGPIPE]
	if trap.code == "" {
		return signal.Ignored(unix.SIGPIPE)
	}
	if trap.below != below {
		return false
	}
	if !t.piped && !slices.Contains(t.pending, unix.SIGPIPE) {
		t.pending = append(t.pending, unix.SIGPIPE)
	}
	return true
}

// pipeOver is called when the trap of SIGPIPE has been run.
func (t *traps) pipeOver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.piped = false
}

// isShell tells whether a command is run by the shell itself and not in a subshell. The interpreter does not say so,
// and to mark every subshell of every program, as those with traps are, costs more than to look.
func (s *session) isShell(hc interp.HandlerContext) bool { return s.runnerOf(hc) == s.runner }

// runnerOf is what runs a command: the shell's own, or a subshell's, which has functions of its own. Those of another
// one cannot be looked at: a pipeline's parts run at the same time, and its last one may make some.
func (s *session) runnerOf(hc interp.HandlerContext) *interp.Runner {
	runner := reflect.ValueOf(hc).FieldByName("runner")
	if !runner.IsValid() || runner.IsNil() {
		return s.runner
	}
	return (*interp.Runner)(runner.UnsafePointer())
}

// dieOfPipe ends this process as SIGPIPE does that nobody catches.
func (s *session) dieOfPipe() {
	if s.parting != nil {
		s.parting()
	}
	runtime.LockOSThread()
	var pipe unix.Sigset_t
	pipe.Val[0] = 1 << (unix.SIGPIPE - 1)
	_, err := setAction(unix.SIGPIPE, action{})
	if err = errors.Join(err, unix.PthreadSigmask(unix.SIG_UNBLOCK, &pipe, nil)); err == nil {
		_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGPIPE)
	}
	os.Exit(128 + int(unix.SIGPIPE)) // the first process of a PID namespace does not die of it
}

// prints tells whether a command prints that does so without put: one of the interpreter's, of call's, or one that
// other shells have themselves. It is looked at before whether anybody reads.
func prints(args []string) bool {
	switch args[0] {
	case "alias", "dirs", "help", "popd", "pushd", "pwd", "times", "type", "ulimit", inner + "list":
		return true
	case "umask", "set":
		return len(args) == 1
	case "kill":
		return len(args) > 1 && args[1] == "-l"
	case "trap":
		return len(args) == 1 || args[1] == "-p" || args[1] == "-l"
	case "cd":
		return len(args) > 1 && args[1] == "-"
	case "command":
		return len(args) > 1 && strings.HasPrefix(args[1], "-")
	case "shopt":
		return len(args) < 2 || args[1] != "-s" && args[1] != "-u" && args[1] != "-q"
	}
	return false
}

// unread tells whether output is a pipe that nobody reads.
func unread(w io.Writer) (is bool) {
	f, ok := plain(w).(*os.File)
	if !ok {
		return false
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		var stat unix.Stat_t
		if unix.Fstat(int(fd), &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
			return
		}
		look := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(look, 0)
		is = err == nil && n > 0 && look[0].Revents&unix.POLLERR != 0
	})
	return is && err == nil
}
