// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a client that takes nothing may hold up what a process that has ended still had to say. A
// terminal that somebody stopped with Ctrl-S must not keep a container from being known to have ended.
const patience = 10 * time.Second

// comes is how long a client that is awaited may take to come.
const comes = 30 * time.Second

// tap is the way of one container's output. Its goroutines: one per stream from pipe to ring, one from ring to log, and
// those of its clients.
type tap struct {
	id    string
	spec  Spec
	log   *slog.Logger
	ended func() // called once, when there will be no more output and the log has all

	mu      sync.Mutex
	changed *sync.Cond // the ring, the clients or the state
	ring    *ring
	clients map[*cursor]*client
	pumps   int       // pipes that are not at their end
	began   time.Time // when this process took the tap up
	joined  bool      // somebody was attached since
	over    time.Time // when the process ended; zero before that
	stopped bool      // this process lets go of the tap; the container goes on
	users   int       // of the ring: the tap itself, and clients

	pipes  []*os.File        // from the shim
	theirs []*os.File        // the runtime's ends, held open until the log has all
	stdin  *os.File          // holds what was sent while the shim had not opened it
	feeds  map[*os.File]bool // ends of stdin of clients
	work   sync.WaitGroup

	logs  *logFile
	spare *sync.Pool // of the logs' buffers
}

// client is somebody who is attached.
type client struct {
	took time.Time // when something was last taken
	free bool      // holds nobody up any more
	left bool      // its input has ended: it gets what has come by now
	from [2]uint64 // what of each stream it has from the log
}

func newTap(id string, s Spec, r *ring, log *slog.Logger, spare *sync.Pool) *tap {
	t := &tap{id: id, spec: s, log: log.With("container", id), spare: spare, ring: r, clients: map[*cursor]*client{},
		began: time.Now(), pumps: len(s.outputs()), users: 1, feeds: map[*os.File]bool{}}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// makeFifos makes the fifos the shim is to be given.
func (s Spec) makeFifos() error {
	for _, path := range s.ours() {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := unix.Mkfifo(path, 0o700); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func (s Spec) removeFifos() {
	for _, path := range s.ours() {
		_ = os.Remove(path)
	}
}

// openBoth opens a fifo for reading and writing, which waits for nobody and ends nothing.
func openBoth(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
}

// hold opens the shim's fifos for both ways, so that it does not wait for anybody, and nothing ends before it has
// opened them.
func (s Spec) hold() (release func(), err error) {
	var held []*os.File
	release = func() { closeAll(held) }
	for _, path := range s.outputs() {
		f, err := openBoth(path + Suffix)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, f)
	}
	return release, nil
}

// holdTheirs opens the runtime's fifos: it waits for somebody to do so, and takes their end for the end of the output.
// Stdin is held too: what is sent before the shim has opened it is not lost.
func (t *tap) holdTheirs() error {
	for _, path := range t.spec.paths() {
		f, err := openBoth(path)
		if err != nil {
			return err
		}
		t.theirs = append(t.theirs, f)
	}
	var err error
	if t.spec.Stdin != "" && t.ring.h.noStdin.Load() == 0 {
		t.stdin, err = openBoth(t.spec.Stdin + Suffix)
	}
	return err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// openLog opens the log. One that cannot be opened costs the log only.
func (t *tap) openLog() {
	var err error
	if t.logs, err = openLog(t.ring, t.spec.Log, t.spare); err != nil {
		t.log.Warn("the output of a container is not logged", "err", err)
		t.logs = newLog(t.ring, t.spare)
	}
}

// open opens the pipes: the shim, if it lives, has them open too.
func (t *tap) open() error {
	for _, path := range t.spec.outputs() {
		f, err := os.OpenFile(path+Suffix, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			closeAll(t.pipes)
			return err
		}
		if !t.spec.FromNow { // somebody waits for what comes: there are more turns where it comes in small pieces
			widen(f, outSize)
		}
		t.pipes = append(t.pipes, f)
	}
	return nil
}

// run begins to take the output.
func (t *tap) run() {
	for i, f := range t.pipes {
		t.work.Go(func() { t.pump(stream(i), f) })
	}
	t.work.Go(t.writeLog)
}

// look takes what is in the pipes that a former process left, and notes if one is at its end: its shim has closed it,
// and what was in it then is gone.
func (t *tap) look() error {
	for i, f := range t.pipes {
		conn, err := f.SyscallConn()
		if err != nil {
			return err
		}
		err = conn.Control(func(fd uintptr) {
			if n, err := t.takeFrom(stream(i), int(fd)); n == 0 && err == nil {
				t.ring.h.cut.Store(1)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pump takes what comes from a pipe into the ring, until the pipe's end.
func (t *tap) pump(s stream, f *os.File) {
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.pumps--
		t.changed.Broadcast()
		_ = f.Close()
	}()
	conn, err := f.SyscallConn()
	for err == nil && t.makeRoom() {
		var n int
		var failed error
		err = conn.Read(func(fd uintptr) bool {
			n, failed = t.takeFrom(s, int(fd))
			return !errors.Is(failed, unix.EAGAIN)
		})
		if err == nil && !errors.Is(failed, unix.EINTR) && !errors.Is(failed, errNoRoom) {
			err = failed
		}
		if n == 0 && failed == nil {
			return
		}
	}
	if err != nil && !t.lettingGo() {
		t.log.Warn("the output of a container cannot be read", "stream", s.String(), "err", err)
	}
}

// errNoRoom says that the other stream took the room that was made.
var errNoRoom = errors.New("no room")

func (t *tap) takeFrom(s stream, fd int) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return 0, os.ErrClosed
	}
	if t.blocked() {
		return 0, errNoRoom
	}
	n, err := t.ring.take(s, func(place [][]byte) (int, error) { return unix.Readv(fd, place) })
	if n > 0 {
		t.unlog()
		t.changed.Broadcast()
	}
	return max(n, 0), err
}

// makeRoom waits until a chunk can be read without overwriting what somebody still needs; false when the tap is let go.
func (t *tap) makeRoom() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.stopped && t.blocked() {
		if t.over.IsZero() && !t.awaits() {
			t.changed.Wait()
			continue
		}
		// A client that does nothing makes no event, nor does one that does not come.
		wake := time.AfterFunc(patience/10, t.changed.Broadcast)
		t.changed.Wait()
		wake.Stop()
	}
	return !t.stopped
}

// blocked lets go of old output, unless somebody needs it.
func (t *tap) blocked() bool {
	to := t.ring.needed()
	if to == t.ring.h.tail.Load() {
		return false
	}
	if to > min(t.ring.h.logged[stdout].Load(), t.ring.h.logged[stderr].Load()) {
		return true
	}
	if t.awaits() {
		return true
	}
	for c, of := range t.clients {
		if !t.over.IsZero() && time.Since(later(t.over, of.took)) > patience {
			of.free = true
		}
		if !of.free && c.pos < to {
			return true
		}
	}
	t.ring.drop(to)
	return false
}

// awaits reports whether the client that the container was made for has yet to come.
func (t *tap) awaits() bool {
	return t.spec.Awaited && !t.joined && time.Since(t.began) < comes &&
		(t.over.IsZero() || time.Since(t.over) < patience)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// writeLog takes the ring's content into the log, until all is there; then the runtime is notified that the output has
// ended.
func (t *tap) writeLog() {
	defer t.letGo()
	defer t.logs.close()
	all := t.logAll
	if t.spec.Log == "" {
		all = t.awaitEnd
	}
	if !all() {
		return
	}
	t.ring.h.ended.Store(1)
	t.ended()
}

// logAll writes the log until there is no more output; false when the tap is let go.
func (t *tap) logAll() bool {
	c := t.ring.start()
	failing := false
	for {
		pieces, last, ok := t.unlogged(c)
		if !ok {
			return false
		}
		err := t.logs.write(pieces, c.position(), last)
		if err != nil && !failing {
			t.log.Warn("the output of a container cannot be logged", "err", err)
		}
		failing = err != nil
		if last {
			return true
		}
		t.mu.Lock()
		t.changed.Broadcast() // somebody may wait for room
		t.mu.Unlock()
	}
}

// awaitEnd waits until there is no more output, of which nobody wants a log; false when the tap is let go.
func (t *tap) awaitEnd() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unlog() // also what a former process has left
	t.changed.Broadcast()
	for !t.stopped && t.pumps > 0 {
		t.changed.Wait()
	}
	return !t.stopped
}

// unlog notes that what is in the ring need not be kept for a log, where nobody wants one. Making lines of it
// costs more than all else that is done with it here.
func (t *tap) unlog() {
	if t.spec.Log != "" {
		return
	}
	for s := range t.ring.h.logged {
		t.ring.h.logged[s].Store(t.ring.h.head.Load())
	}
}

// letGo closes what the tap holds.
func (t *tap) letGo() {
	closeAll(t.theirs)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stdin != nil {
		_ = t.stdin.Close()
		t.stdin = nil
	}
	t.release()
}

// release ends one use of the ring. With the last one, output that was only passing and is in the log takes no room any
// more.
func (t *tap) release() {
	if t.users--; t.users == 0 {
		if t.spec.FromNow && t.ring.h.ended.Load() != 0 {
			t.ring.empty()
		}
		t.ring.close()
	}
}

// unlogged copies output that the log does not have, waiting for some; last says that there will be no more, ok that
// the tap is not let go.
func (t *tap) unlogged(c *cursor) (pieces []piece, last, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.stopped && t.pumps > 0 && !t.ring.more(c) {
		t.logs.rest()
		t.changed.Wait()
	}
	if t.stopped {
		return nil, false, false
	}
	// What a former process has logged already is let go by whoever makes room, also before this cursor has come past
	// it.
	t.ring.catchUp(c)
	buf := t.logs.buffer()
	for len(buf) > 0 && t.ring.more(c) {
		n, s, at := t.ring.next(c, buf, false)
		pieces, buf = append(pieces, piece{s, at, buf[:n]}), buf[n:]
	}
	return pieces, t.pumps == 0 && !t.ring.more(c), true
}

// processEnded is called when the container's process has ended.
func (t *tap) processEnded() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = time.Now()
	t.changed.Broadcast()
}

func (t *tap) lettingGo() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

// stop lets go of the container, which goes on; the next process takes up here.
func (t *tap) stop() {
	t.mu.Lock()
	t.stopped = true
	t.changed.Broadcast()
	t.mu.Unlock()
	for _, f := range t.pipes {
		_ = f.SetReadDeadline(time.Now())
	}
	t.work.Wait()
}
