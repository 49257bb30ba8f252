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
	"sync"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// descriptorDir is where the shell's descriptors are files.
const descriptorDir = "/dev/fd/"

// descriptors are the shell's files from 3 on; the interpreter knows the first three only.
type descriptors struct {
	mu    sync.Mutex
	open  map[int]*os.File
	saved map[int][]*os.File // those that a command's own redirections hide
	marks []map[int]int      // how many of each were hidden when a command began that may end without giving them back
}

// inherited takes over what this process was started with. What Go's runtime opened for itself is closed in programs.
func inherited() *descriptors {
	d := &descriptors{open: map[int]*os.File{}, saved: map[int][]*os.File{}}
	for n := 3; n < 16; n++ {
		if flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.CloseOnExec(n)
			d.open[n] = os.NewFile(uintptr(n), descriptorDir+strconv.Itoa(n))
		}
	}
	return d
}

// extra is what programs get.
func (d *descriptors) extra() []*os.File {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := 2
	for n := range d.open {
		last = max(last, n)
	}
	out := make([]*os.File, last-2)
	for n, f := range d.open {
		out[n-3] = f
	}
	return out
}

// handOver makes this process's own descriptors those of the shell, for a program that replaces it.
func (d *descriptors) handOver() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n, f := range d.open {
		if int(f.Fd()) != n {
			_ = unix.Dup3(int(f.Fd()), n, 0)
		} else {
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETFD, 0)
		}
	}
}

// do is the call that a redirection was made of: set, push or pop, a number, and what to open; or mark or unwind, which stand around a
// command.
func (d *descriptors) do(hc interp.HandlerContext, args []string) int {
	n, err := strconv.Atoi(args[1])
	if err != nil || n > 255 {
		fmt.Fprintf(hc.Stderr, "sh: descriptor %s: at most 255 is known here\n", args[1])
		return 1
	}
	switch args[0] {
	case "mark", "unwind":
		d.mark(args[0] == "unwind")
		return hc.LastExitStatus
	case "pop":
		d.mu.Lock()
		defer d.mu.Unlock()
		if hidden := d.saved[n]; len(hidden) > 0 {
			d.put(n, hidden[len(hidden)-1])
			d.saved[n] = hidden[:len(hidden)-1]
		}
		return hc.LastExitStatus
	}
	file, err := d.file(hc, args[2], args[3])
	if err != nil {
		fmt.Fprintf(hc.Stderr, "sh: %v\n", err)
		return 1
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if args[0] == "push" {
		d.saved[n] = append(d.saved[n], d.open[n])
		delete(d.open, n)
	}
	d.put(n, file)
	return 0
}

// mark notes what is hidden now; with back it gives back what was hidden since the last mark.
func (d *descriptors) mark(back bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !back {
		now := map[int]int{}
		for n, hidden := range d.saved {
			now[n] = len(hidden)
		}
		d.marks = append(d.marks, now)
		return
	}
	if len(d.marks) == 0 {
		return
	}
	then := d.marks[len(d.marks)-1]
	d.marks = d.marks[:len(d.marks)-1]
	for n, hidden := range d.saved {
		for len(hidden) > then[n] {
			d.put(n, hidden[len(hidden)-1])
			hidden = hidden[:len(hidden)-1]
		}
		d.saved[n] = hidden
	}
}

// unwind gives back what redirections hide whose commands will not: Ctrl-C has ended the line they were in.
func (d *descriptors) unwind() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n, hidden := range d.saved {
		for i := len(hidden) - 1; i >= 0; i-- {
			d.put(n, hidden[i])
		}
		delete(d.saved, n)
	}
	d.marks = nil
}

func (d *descriptors) put(n int, f *os.File) {
	if old := d.open[n]; old != nil {
		old.Close()
	}
	if delete(d.open, n); f != nil {
		d.open[n] = f
	}
}

// file opens what a redirection names; nil is a closed one.
func (d *descriptors) file(hc interp.HandlerContext, op, word string) (*os.File, error) {
	path := word
	if !filepath.IsAbs(path) {
		path = filepath.Join(hc.Dir, path)
	}
	switch op {
	case "<&", ">&":
		if word == "-" {
			return nil, nil
		}
		return d.duplicate(hc, word)
	case "<":
		return os.Open(path)
	case ">", ">|":
		return os.Create(path)
	case ">>":
		return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	case "<>":
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	case "<<<":
		fd, err := unix.MemfdCreate("here", unix.MFD_CLOEXEC)
		if err != nil {
			return nil, err
		}
		f := os.NewFile(uintptr(fd), "here")
		_, err = f.WriteString(word + "\n")
		_, e := f.Seek(0, io.SeekStart)
		return f, errors.Join(err, e)
	}
	return nil, fmt.Errorf("redirection %s is not known here for descriptors from 3 on", op)
}

// duplicate opens a descriptor a second time: both read and write at the same place.
func (d *descriptors) duplicate(hc interp.HandlerContext, word string) (*os.File, error) {
	n, err := strconv.Atoi(word)
	if err != nil {
		return nil, fmt.Errorf("%s is not a descriptor", word)
	}
	var f *os.File
	switch n {
	case 0:
		f, _ = hc.Stdin.(*os.File)
	case 1:
		f, _ = hc.Stdout.(*os.File)
	case 2:
		f, _ = hc.Stderr.(*os.File)
	default:
		d.mu.Lock()
		defer d.mu.Unlock()
		f = d.open[n]
	}
	if f == nil {
		return nil, fmt.Errorf("descriptor %d is not open", n)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	copied := -1
	if e := raw.Control(func(fd uintptr) { copied, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 16) }); e != nil || err != nil {
		return nil, errors.Join(e, err)
	}
	return os.NewFile(uintptr(copied), f.Name()), nil
}

// opener opens the files of redirections and of source.
func (s *session) opener(ctx context.Context, path string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	if flag == os.O_RDONLY && s.sourcing.CompareAndSwap(true, false) {
		return s.sourced(ctx, path)
	}
	if word, ok := strings.CutPrefix(path, descriptorDir); ok {
		f, err := s.files.duplicate(interp.HandlerCtx(ctx), word)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return f, nil
	}
	return interp.DefaultOpenHandler()(ctx, path, flag, perm)
}

// sourced is a script that source reads, rewritten.
func (s *session) sourced(ctx context.Context, path string) (io.ReadWriteCloser, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(interp.HandlerCtx(ctx).Dir, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if source, err := rewritten(string(data)); err == nil {
		data = []byte(source) // otherwise the interpreter says what is wrong with it
	}
	return script{strings.NewReader(string(data))}, nil
}

type script struct{ io.Reader }

func (script) Close() error              { return nil }
func (script) Write([]byte) (int, error) { return 0, fs.ErrPermission }
