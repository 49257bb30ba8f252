// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/containerd/go-runc"
	"golang.org/x/sys/unix"
)

const (
	consoleTime = 30 * time.Second // for runc to send the terminal it has made
	drainTime   = 10 * time.Second // for the rest of a terminal's output to be fetched after the process's end
	copySize    = 8 << 10
)

// terminal is a process's terminal: its master side, and what is copied from and to it.
type terminal struct {
	master *os.File
	ends   []*os.File    // the pipes' ends here
	copied chan struct{} // closed when all output is copied
}

// terminalOf takes the master side of the terminal that runc makes for the process while it starts it: it has its size
// before its program runs. The returned function waits for it.
func terminalOf(p *process, socket *runc.Socket) (wait func() (*os.File, error)) {
	type received struct {
		f   *os.File
		err error
	}
	got := make(chan received, 1)
	go func() {
		c, err := socket.ReceiveMaster()
		if err != nil {
			got <- received{err: err}
			return
		}
		defer c.Close()
		f, err := pollable(int(c.Fd()), "terminal")
		if err == nil {
			err = p.hasTerminal(f)
		}
		got <- received{f, err}
	}()
	return func() (*os.File, error) {
		select {
		case r := <-got:
			return r.f, r.err
		case <-time.After(consoleTime):
			return nil, errors.New("runc has sent no terminal")
		}
	}
}

// pollable makes a file of its own of a descriptor, which reads and writes without a thread.
func pollable(fd int, name string) (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// joinTerminal copies between a terminal and the streams, which are its own from now on.
func (o *stdio) joinTerminal(master *os.File) error {
	t := &terminal{master: master, copied: make(chan struct{})}
	in, ierr := t.take(&o.give[0])
	out, oerr := t.take(&o.give[1])
	if err := errors.Join(ierr, oerr); err != nil {
		t.close()
		return err
	}
	go func() { _, _ = io.CopyBuffer(onlyWriter{master}, onlyReader{in}, make([]byte, copySize)) }()
	go func() {
		defer close(t.copied)
		defer out.Close()
		_, _ = io.CopyBuffer(onlyWriter{out}, onlyReader{master}, make([]byte, copySize))
	}()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tty = t
	return nil
}

// take makes a file for copying of one that was meant for a process.
func (t *terminal) take(from **os.File) (*os.File, error) {
	f := *from
	*from = nil
	defer f.Close()
	mine, err := pollable(int(f.Fd()), f.Name())
	if err == nil {
		t.ends = append(t.ends, mine)
	}
	return mine, err
}

// setSize sets a terminal's size, in characters.
func setSize(master *os.File, size unix.Winsize) error {
	conn, err := master.SyscallConn()
	if err != nil {
		return err
	}
	cerr := conn.Control(func(fd uintptr) { err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &size) })
	return errors.Join(cerr, err)
}

func (t *terminal) close() {
	_ = t.master.Close()
	for _, f := range t.ends {
		_ = f.Close()
	}
}

// drain waits until all that the process has written to its terminal is copied.
func (o *stdio) drain() {
	if o == nil || o.tty == nil {
		return
	}
	select {
	case <-o.tty.copied:
	case <-time.After(drainTime):
	}
}

// onlyReader and onlyWriter hide what else a file can do: copying by the kernel's means allocates larger buffers.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)
