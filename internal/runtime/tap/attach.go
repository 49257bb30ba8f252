// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// Options are the streams of a client. Those it does not want are nil.
type Options struct {
	TTY    bool      // the client has a terminal: what the container's has no stream of its own for goes to Stdout
	Stdin  io.Reader // read until it ends; whoever attaches ends it when Attach has returned
	Stdout io.Writer
	Stderr io.Writer
	Resize <-chan remotecommand.TerminalSize // the client's window; may be nil
	// Past is called before anything else, where output is not kept ([Spec.FromNow]): with the container's log as it is
	// when the client attaches. The output that the log does not have by then follows, to the byte. It may be nil.
	Past func(log io.ReaderAt, size int64) error
}

// Shim is what a tap asks of a container's shim.
type Shim interface {
	CloseStdin() error // nothing more comes on stdin
	Resize(remotecommand.TerminalSize) error
}

// ErrStopped is what clients get when this process lets go of the containers, which go on.
var ErrStopped = errors.New("the container runtime is stopping but the container keeps running: attach again")

// attach gives a client everything the ring holds, or everything that the log does not have (FromNow), and what comes,
// until there is no more (nil), ctx is done, or it takes nothing any more (its error).
func (t *tap) attach(ctx context.Context, o Options, shim Shim) error {
	c, of, log, err := t.begin()
	if err != nil {
		return err
	}
	defer log.close()

	// A client that is gone holds nobody up, also while a write to it still hangs.
	gone := context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.clients, c)
		t.changed.Broadcast()
	})
	defer func() {
		gone()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.clients, c)
		t.changed.Broadcast()
		t.release()
	}()
	if err := log.show(o.Past); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	// one that the container does not have is read all the same, for what else comes over its connection
	if o.Stdin != nil {
		stop, err := t.feed(ctx, o.Stdin, of, shim)
		if err != nil {
			return err
		}
		defer stop()
	}
	if o.Resize != nil && t.spec.TTY {
		sizes, cancel := context.WithCancel(ctx)
		defer cancel()
		go t.resize(sizes, o.Resize, shim)
	}
	out := outputs{o, t.spec.TTY}
	in := lent{spare: t.spare}
	defer in.rest()
	for {
		text, s, lost, err := t.await(ctx, c, of, &in)
		if err != nil {
			return err
		}
		if len(text) == 0 {
			return out.end(t.ring)
		}
		if err := out.write(s, text, lost); err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// begin makes a client of the tap, at the oldest byte of the ring or at the end of the log.
func (t *tap) begin() (c *cursor, of *client, log past, err error) {
	if !t.spec.FromNow {
		t.mu.Lock()
		defer t.mu.Unlock()
		if err = t.mayAttach(); err == nil {
			c, of = t.add(t.ring.start(), [2]uint64{})
		}
		return c, of, log, err
	}
	// The log goes on only when the client has its place: the ring keeps for it what comes.
	t.logs.mu.Lock()
	defer t.logs.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err = t.mayAttach(); err != nil {
		return nil, nil, log, err
	}
	if t.ring.h.ended.Load() != 0 { // the log has all, and is closed, or will be at once
		return nil, nil, log, errGone
	}
	logged := t.logs.logged()
	c, of = t.add(t.ring.from(min(logged[stdout], logged[stderr])), logged)
	log.file, log.size = t.logs.reader()
	return c, of, log, nil
}

// mayAttach says why nobody can attach; with the lock held.
func (t *tap) mayAttach() error {
	switch {
	case t.stopped:
		return ErrStopped
	case t.ring.mem == nil:
		return errGone
	}
	return nil
}

// add notes a client; with the lock held.
func (t *tap) add(c *cursor, from [2]uint64) (*cursor, *client) {
	of := &client{took: time.Now(), from: from}
	t.users++
	t.clients[c] = of
	t.joined = true
	t.changed.Broadcast()
	return c, of
}

// past is a container's log at one time; nothing if it has none.
type past struct {
	file *os.File
	size int64
}

func (p past) show(to func(io.ReaderAt, int64) error) error {
	if p.file == nil || to == nil {
		return nil
	}
	return to(p.file, p.size)
}

func (p past) close() {
	if p.file != nil {
		_ = p.file.Close()
	}
}

// replay gives a client what is kept of a container that has ended.
func replay(ctx context.Context, r *ring, o Options, tty bool) error {
	out := outputs{o, tty}
	c := r.start()
	buf := make([]byte, chunk)
	for r.more(c) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n, s, _ := r.next(c, buf, true)
		if err := out.write(s, buf[:n], c.lost); err != nil {
			return errors.Join(ctx.Err(), err)
		}
		c.lost = 0
	}
	return out.end(r)
}

// outputs are where a client's output goes.
type outputs struct {
	o   Options
	tty bool // of the container
}

func (w outputs) write(s stream, text []byte, lost uint64) error {
	if lost > 0 {
		if err := w.mark(lost); err != nil {
			return err
		}
	}
	to := w.o.Stdout
	if s == stderr && !w.o.TTY {
		to = w.o.Stderr
	}
	if to == nil {
		return nil
	}
	_, err := to.Write(text)
	return err
}

// mark says in the output that a part of it is missing.
func (w outputs) mark(lost uint64) error {
	return w.say(bytesOf(lost) + " of earlier output not shown")
}

// end says so at the end, if that may be.
func (w outputs) end(r *ring) error {
	if r.h.cut.Load() == 0 {
		return nil
	}
	return w.say("the container exited while the server was not running: its last output may be missing")
}

// say puts a line of ours into the output, where it cannot be taken for the program's if there is such a place.
func (w outputs) say(words string) error {
	to, end := w.o.Stderr, "\n"
	if to == nil || w.tty || w.o.TTY {
		to = w.o.Stdout
	}
	if w.tty {
		end = "\r\n"
	}
	if to == nil {
		return nil
	}
	_, err := fmt.Fprintf(to, "[wherry: %s]%s", words, end)
	return err
}

func bytesOf(n uint64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// feed hands a client's input on, until it ends or stop is called. The end of the input is the container's only if the
// container asks for that (stdinOnce), and never with a terminal, which has no end. Where output is not kept, the end
// of any other input is the client's leaving, as with the CRI: kubectl run --leave-stdin-open waits for that.
func (t *tap) feed(ctx context.Context, in io.Reader, of *client, shim Shim) (stop func(), err error) {
	fifo, err := t.openFeed()
	if err != nil {
		return nil, fmt.Errorf("stdin: %w", err)
	}
	if fifo == nil {
		go func() { _, _ = io.Copy(io.Discard, in) }()
		return func() {}, nil
	}
	leave := context.AfterFunc(ctx, func() { _ = fifo.Close() })
	go func() {
		_, err := io.Copy(fifo, in)
		t.closeFeed(fifo)
		switch {
		case errors.Is(err, os.ErrClosed) && ctx.Err() == nil: // by stop, or by the end of another client's input
			_, _ = io.Copy(io.Discard, in)
		case t.spec.StdinOnce && !t.spec.TTY:
			t.endStdin(shim)
		case t.spec.FromNow:
			t.mu.Lock()
			defer t.mu.Unlock()
			of.left = true
			t.changed.Broadcast()
		}
	}()
	return func() { leave(); t.closeFeed(fifo) }, nil
}

// openFeed opens an end of stdin for one client, so that its leaving ends a write that waits, and no other client's. It
// is nil if nobody reads any more.
func (t *tap) openFeed() (*os.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stdin == nil {
		return nil, nil // it was closed for good
	}
	fifo, err := openBoth(t.spec.Stdin + Suffix)
	if errors.Is(err, fs.ErrNotExist) { // the process has ended, and the runtime removed it
		return nil, nil
	}
	if err == nil {
		widen(fifo, feedSize)
		t.feeds[fifo] = true
	}
	return fifo, err
}

const (
	// feedSize is how much of its input a process may find at once, and its feeder leave there without waiting for it.
	feedSize = 1 << 20
	// outSize is how much a process may leave for who takes it from there, where somebody waits for its output. So much
	// of each stream can be lost of a process that ends while no server runs: what is in the pipe goes with the shim's
	// end of it. In a pipe that is not widened that is 64 KiB at most.
	outSize = 256 << 10
)

// widen gives a pipe more room than the kernel does by itself. Memory is taken only for what is in it. Without it, as
// where the kernel has a lower bound for users, there are more turns.
func widen(pipe *os.File, size int) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) })
}

func (t *tap) closeFeed(fifo *os.File) {
	_ = fifo.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.feeds, fifo)
}

// endStdin closes stdin for good, unless it is closed or this process lets go of the container. The ends of other
// clients are closed with it: the container would not see the end of its input while one of them stays.
func (t *tap) endStdin(shim Shim) {
	t.mu.Lock()
	last := t.stdin
	if t.stopped || last == nil {
		t.mu.Unlock()
		return
	}
	t.ring.h.noStdin.Store(1) // the ring is there: the tap has its use of it while it has stdin
	t.stdin = nil
	others := slices.Collect(maps.Keys(t.feeds))
	t.mu.Unlock()
	closeAll(others)
	if err := shim.CloseStdin(); err != nil {
		t.log.Debug("stdin of a container cannot be closed", "err", err)
	}
	_ = last.Close()
}

// resize gives the terminal the size of the window that was changed last.
func (t *tap) resize(ctx context.Context, sizes <-chan remotecommand.TerminalSize, shim Shim) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				return
			}
			if err := shim.Resize(size); err != nil {
				t.log.Debug("a terminal cannot be resized", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
