// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// descriptorDir is where the shell's descriptors are files.
const descriptorDir = "/dev/fd/"

// inherited takes over what this process was started with. What Go's runtime opened for itself is closed in programs.
func inherited() *descriptors {
	d := newDescriptors()
	for n := 3; n < 16; n++ {
		if flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.CloseOnExec(n)
			d.tables[""].open[n] = os.NewFile(uintptr(n), descriptorDir+strconv.Itoa(n))
		}
	}
	return d
}

// extra is what programs get.
func (d *descriptors) extra(hc interp.HandlerContext) []*os.File {
	d.mu.Lock()
	defer d.mu.Unlock()
	open := d.of(hc).open
	last := 2
	for n := range open {
		last = max(last, n)
	}
	out := make([]*os.File, last-2)
	for n, f := range open {
		out[n-3] = f
	}
	return out
}

// handOver makes this process's own descriptors those of the shell, for a program that replaces it.
func (d *descriptors) handOver(hc interp.HandlerContext) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n, f := range d.of(hc).open {
		if int(f.Fd()) != n {
			_ = unix.Dup3(int(f.Fd()), n, 0)
		} else {
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETFD, 0)
		}
	}
}

// set is the call that a redirection of exec was made of: a number, the operator and what to open.
func (d *descriptors) set(ctx context.Context, args []string) int {
	hc := interp.HandlerCtx(ctx)
	n, file, err := d.opened(ctx, args[0], args[1], args[2])
	if ctx.Err() != nil {
		return 130
	} else if err != nil {
		fmt.Fprintf(hc.Stderr, "sh: %v\n", err)
		return 1
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of(hc).put(n, file)
	return 0
}

// opened is the number and the file of a redirection.
func (d *descriptors) opened(ctx context.Context, number, op, word string) (int, *os.File, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n > 255 {
		return 0, nil, fmt.Errorf("descriptor %s: the highest is 255", number)
	}
	file, err := d.file(ctx, op, word)
	return n, file, err
}

// file opens what a redirection names; nil is a closed one.
func (d *descriptors) file(ctx context.Context, op, word string) (*os.File, error) {
	hc := interp.HandlerCtx(ctx)
	if n := descriptorOf(word); n >= 0 && strings.Trim(op, "<>|") == "" && op != "<<<" && op != "<<" {
		return d.duplicate(hc, strconv.Itoa(n))
	}
	switch op {
	case "<&", ">&":
		if word == "-" {
			return nil, nil
		}
		return d.duplicate(hc, word)
	case "<":
		return openFile(ctx, word, os.O_RDONLY, 0)
	case ">", ">|":
		return openFile(ctx, word, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	case ">>":
		return openFile(ctx, word, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	case "<>":
		return openFile(ctx, word, os.O_RDWR|os.O_CREATE, 0o666)
	case "<<", "<<<":
		fd, err := unix.MemfdCreate("here", unix.MFD_CLOEXEC)
		if err != nil {
			return nil, err
		}
		f := os.NewFile(uintptr(fd), "here")
		if op == "<<<" {
			word += "\n"
		}
		_, err = f.WriteString(word)
		_, e := f.Seek(0, io.SeekStart)
		return f, errors.Join(err, e)
	}
	return nil, fmt.Errorf("redirection %s is not known here for descriptors from 3 on", op)
}

// descriptorOf is the descriptor that a file's name stands for, or -1.
func descriptorOf(name string) int {
	for n, other := range []string{"/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		if name == other {
			return n
		}
	}
	if word, ok := strings.CutPrefix(name, descriptorDir); ok {
		if n, err := strconv.Atoi(word); err == nil {
			return n
		}
	}
	return -1
}

// at is the file that a descriptor is, or nil: it is closed, or a substitution's output that is none.
func (d *descriptors) at(hc interp.HandlerContext, n int) *os.File {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held(hc, n)
}

// held is at for those who have the lock.
func (d *descriptors) held(hc interp.HandlerContext, n int) *os.File {
	var f *os.File
	switch n {
	case 0:
		f, _ = hc.Stdin.(*os.File)
	case 1:
		f, _ = plain(hc.Stdout).(*os.File)
	case 2:
		f, _ = plain(hc.Stderr).(*os.File)
	default:
		f = d.of(hc).open[n]
	}
	return f
}

// duplicate opens a descriptor a second time: both read and write at the same place.
func (d *descriptors) duplicate(hc interp.HandlerContext, word string) (*os.File, error) {
	n, err := strconv.Atoi(word)
	if err != nil {
		return nil, fmt.Errorf("%s is not a descriptor", word)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.held(hc, n)
	switch {
	case f == nil && n == 1:
		f = fileOf(hc.Stdout)
	case f == nil && n == 2:
		f = fileOf(hc.Stderr)
	}
	if f == nil {
		return nil, fmt.Errorf("descriptor %d is not open", n)
	}
	return again(f)
}

// again opens a file's descriptor a second time.
func again(f *os.File) (*os.File, error) {
	fd, err := copied(f, 16)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// copied is a second descriptor for a file, from a number on.
func copied(f *os.File, from int) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd = -1
	e := raw.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, from) })
	return fd, errors.Join(e, err)
}

// opener opens the files of redirections and of source.
func (s *session) opener(ctx context.Context, path string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	if flag == os.O_RDONLY && s.sourcing.CompareAndSwap(true, false) {
		return s.sourced(ctx, path)
	}
	if strings.Contains(path, mark) {
		return s.files.begin(ctx, path)
	}
	if n := descriptorOf(path); n >= 0 {
		f, err := s.files.duplicate(interp.HandlerCtx(ctx), strconv.Itoa(n))
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return f, nil
	}
	if flag&os.O_CREATE != 0 {
		perm = 0o666 // less what umask takes from it; the interpreter says 644
	}
	f, err := openFile(ctx, path, flag, perm)
	switch {
	case err != nil:
		return nil, err // and no nil of the file's type
	case flag == os.O_RDONLY:
		return f, nil
	}
	return traceless{f}, nil // it may become standard error
}

// openFile opens a file as the interpreter does, but gives up with the line that it is for: a named pipe waits for its
// other side.
func openFile(ctx context.Context, path string, flag int, perm os.FileMode) (*os.File, error) {
	full := path
	if full == "" {
		return nil, &os.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if !filepath.IsAbs(full) {
		full = filepath.Join(interp.HandlerCtx(ctx).Dir, full)
	}
	info, err := os.Stat(full)
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return os.OpenFile(full, flag, perm)
	}
	type result struct {
		f   *os.File
		err error
	}
	opened := make(chan result, 1)
	go func() {
		f, err := os.OpenFile(full, flag, perm)
		opened <- result{f, err}
	}()
	select {
	case r := <-opened:
		return r.f, r.err
	case <-ctx.Done():
	}
	// Whoever opens both sides lets everybody else in, who finds nobody then.
	if both, err := os.OpenFile(full, os.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
		defer both.Close()
		if r := <-opened; r.err == nil {
			r.f.Close()
		}
	}
	return nil, ctx.Err()
}

// sourced is a script that source reads, rewritten.
func (s *session) sourced(ctx context.Context, path string) (io.ReadWriteCloser, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(interp.HandlerCtx(ctx).Dir, path)
	}
	data, err := s.scriptText(interp.HandlerCtx(ctx), path)
	if err != nil {
		return nil, err
	}
	if source, err := s.rewriter.rewritten(string(data), place{asked: s.asks(interp.HandlerCtx(ctx)),
		function: true}); err == nil {
		data = []byte(source) // otherwise the interpreter says what is wrong with it
	}
	return script{strings.NewReader(string(data))}, nil
}

// scriptText reads a script, which may be what a descriptor of the shell has.
func (s *session) scriptText(hc interp.HandlerContext, path string) ([]byte, error) {
	if n := descriptorOf(path); n >= 0 {
		if f := s.files.at(hc, n); f != nil {
			return io.ReadAll(f)
		}
	}
	return os.ReadFile(path)
}

type script struct{ io.Reader }

func (script) Close() error              { return nil }
func (script) Write([]byte) (int, error) { return 0, fs.ErrPermission }
