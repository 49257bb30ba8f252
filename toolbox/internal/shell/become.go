// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// become replaces this process by a program: a background command that is one program is that program.
func (s *session) become(ctx context.Context, hc interp.HandlerContext, args []string) error {
	path, args, ok := s.locate(hc, args)
	if !ok {
		return s.missing(hc, args[0])
	}
	err := os.Chdir(hc.Dir)
	if err == nil {
		err = settle(hc)
	}
	if err == nil {
		s.files.handOver(hc)
		undo := undisturbed()
		err = syscall.Exec(path, args, environment(hc.Env))
		if errors.Is(err, unix.ENOEXEC) { // a script without a first line that names its shell
			if sh, words, ok := s.locate(hc, scriptOf(path, args)); ok {
				err = syscall.Exec(sh, words, environment(hc.Env))
			}
		}
		undo()
	}
	return s.unstartable(ctx, hc, path, args, err)
}

// undisturbed has the kernel itself do what is to be done about signals: one that another thread has taken would be
// lost with that thread when this process becomes a program, and who has sent it waits for its end.
func undisturbed() (undo func()) {
	was := map[unix.Signal]action{}
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGALRM, unix.SIGPIPE, unix.SIGTSTP, unix.SIGXCPU, unix.SIGXFSZ} {
		if signal.Ignored(sig) {
			continue
		}
		if before, err := setAction(sig, action{}); err == nil {
			was[sig] = before
		}
	}
	taken(time.Now().Add(patience)) // by their handler
	return func() {
		for sig, before := range was {
			_, _ = setAction(sig, before)
		}
	}
}

// replace is exec with a program, in the shell itself: nothing of the shell is left, and so no trap on EXIT is run. A
// shell that was put into a container stays, for the sake of the orphans that come to it.
func (s *session) replace(ctx context.Context, hc interp.HandlerContext, args []string) error {
	var err error
	if s.ending == nil {
		err = s.become(ctx, hc, args)
		if s.interactive != nil {
			return err // somebody sits before it: it goes on
		}
	} else if err = s.exec(ctx, args); ctx.Err() == nil {
		_ = hc.Builtin(ctx, []string{"trap", "-", "EXIT"})
	}
	_ = hc.Builtin(ctx, []string{"trap", "-", "ERR"}) // of which this is none
	status, _ := interp.IsExitStatus(err)
	return hc.Builtin(ctx, []string{"exit", strconv.Itoa(int(status))})
}

// outOfTheWay is where a descriptor is that is to be put at one of the first three.
const outOfTheWay = 64

// settle makes the first three descriptors of this process what they are for a command; what is closed is empty.
func settle(hc interp.HandlerContext) error {
	var at [3]int
	for i, stream := range []any{hc.Stdin, output(hc.Stdout), output(hc.Stderr)} {
		var err error
		if f, ok := stream.(*os.File); ok && f != nil {
			at[i], err = copied(f, outOfTheWay)
		} else {
			at[i], err = unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
		}
		if err != nil {
			return err
		}
		defer unix.Close(at[i])
	}
	for i, fd := range at {
		if err := unix.Dup3(fd, i, 0); err != nil {
			return err
		}
	}
	return nil
}
