// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// readerTime is how long containerd may take to open its end of an output.
const readerTime = 30 * time.Second

// streams names the pipes of a process, as containerd gives them: named pipes, or nothing.
type streams struct {
	stdin, stdout, stderr string
	terminal              bool
	uid, gid              int // who is to own them, in a user namespace; 0: whoever does
}

// check refuses what is not a named pipe before anything is made.
func (s streams) check() error {
	for _, uri := range []string{s.stdin, s.stdout, s.stderr} {
		if _, err := pipePath(uri); err != nil {
			return err
		}
	}
	return nil
}

func pipePath(uri string) (string, error) {
	path := strings.TrimPrefix(uri, "fifo://")
	if scheme, _, ok := strings.Cut(path, "://"); ok {
		return "", fmt.Errorf("stream %q: this shim knows named pipes only, not %s: %w", uri, scheme,
			errdefs.ErrNotImplemented)
	}
	return path, nil
}

// stdio are the open ends of a process's streams on this side.
//
// Without a terminal a process gets containerd's pipes themselves: nothing is copied here. What is held is one reading
// end of each output, so that a process is not killed for writing while containerd is away (it waits then, once the
// pipe is full), and one writing end of the input, so that it has an end only when CloseIO says so. No writing end of
// an output is held: containerd sees its end when the last process has closed it.
type stdio struct {
	give [3]*os.File // for the process; closed as soon as it has them

	mu    sync.Mutex
	held  []*os.File
	stdin *os.File // the writing end of the input
	tty   *terminal
}

// openStdio opens a process's streams. With a terminal they are to be joined with it (joinTerminal); without, they are
// for the process itself.
func openStdio(ctx context.Context, s streams) (_ *stdio, err error) {
	o := &stdio{}
	defer func() {
		if err != nil {
			o.given()
			o.close()
		}
	}()
	if o.give[0], o.stdin, err = openInput(s); err != nil {
		return nil, err
	}
	outputs := []string{s.stdout, s.stderr}
	if s.terminal {
		outputs = outputs[:1]
	}
	for i, uri := range outputs {
		if o.give[i+1], err = o.output(ctx, uri, s); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// openInput opens both ends of an input. The one to be read is left blocking, as programs expect it.
func openInput(s streams) (r, w *os.File, err error) {
	if s.stdin == "" {
		r, err = os.Open(os.DevNull)
		return r, nil, err
	}
	path, err := pipePath(s.stdin)
	if err != nil {
		return nil, nil, err
	}
	if r, err = openPipe(path, unix.O_RDONLY); err != nil {
		return nil, nil, err
	}
	if w, err = openPipe(path, unix.O_WRONLY); err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return r, w, own(r, s)
}

// output opens an output for the process, and holds a reading end of it.
func (o *stdio) output(ctx context.Context, uri string, s streams) (*os.File, error) {
	if uri == "" {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	path, err := pipePath(uri)
	if err != nil {
		return nil, err
	}
	r, w, err := openOutput(ctx, path)
	if err != nil {
		return nil, err
	}
	o.held = append(o.held, r)
	return w, own(w, s)
}

// openOutput opens both ends of an output, when containerd has opened its own: it opens it for as long as there is a
// writer only, and would never see what a process wrote that has ended by then.
func openOutput(ctx context.Context, path string) (r, w *os.File, err error) {
	ctx, cancel := context.WithTimeout(ctx, readerTime)
	defer cancel()
	type opened struct {
		w   *os.File
		err error
	}
	got := make(chan opened, 1)
	go func() {
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			got <- opened{err: &os.PathError{Op: "open", Path: path, Err: err}}
			return
		}
		got <- opened{w: os.NewFile(uintptr(fd), path)}
	}()
	select {
	case o := <-got:
		if o.err != nil {
			return nil, nil, o.err
		}
		if r, err = openPipe(path, unix.O_RDONLY); err != nil {
			return nil, nil, errors.Join(err, o.w.Close())
		}
		return r, o.w, nil
	case <-ctx.Done(): // containerd is gone, or does not come
	}
	// An end to read from has the other one opened.
	if r, err = openPipe(path, unix.O_RDONLY); err != nil {
		return nil, nil, err
	}
	o := <-got
	if o.w != nil {
		_ = o.w.Close()
	}
	return nil, nil, errors.Join(fmt.Errorf("nobody reads %s", path), o.err, r.Close())
}

// openPipe opens a named pipe at once, whoever has its other end, and makes what is done with it blocking.
func openPipe(path string, flag int) (*os.File, error) {
	fd, err := unix.Open(path, flag|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

func own(f *os.File, s streams) error {
	if s.uid == 0 && s.gid == 0 {
		return nil
	}
	return f.Chown(s.uid, s.gid)
}

// given closes what the process has now, or will never have.
func (o *stdio) given() {
	for i, f := range o.give {
		if f != nil {
			_ = f.Close()
			o.give[i] = nil
		}
	}
}

// closeStdin gives the process the end of its input.
func (o *stdio) closeStdin() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stdin == nil {
		return nil
	}
	err := o.stdin.Close()
	o.stdin = nil
	return err
}

// close gives everything back. A terminal's output that nobody has fetched is lost.
func (o *stdio) close() {
	_ = o.closeStdin()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.held {
		_ = f.Close()
	}
	o.held = nil
	if o.tty != nil {
		o.tty.close()
	}
}

// The rest makes it go-runc's IO, which runc inherits.

func (o *stdio) Set(cmd *exec.Cmd) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.give[0], o.give[1], o.give[2]
}

func (o *stdio) CloseAfterStart() error { o.given(); return nil }

func (o *stdio) Close() error          { return nil }
func (o *stdio) Stdin() io.WriteCloser { return nil }
func (o *stdio) Stdout() io.ReadCloser { return nil }
func (o *stdio) Stderr() io.ReadCloser { return nil }
