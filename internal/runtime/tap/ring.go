// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// ringSize is how much output of a container is kept, in bytes. A megabyte is some ten thousand lines, more than
	// people scroll back; a hundred debug containers take a hundred megabytes of disk, and of memory only what was
	// printed.
	ringSize = 1 << 20
	// passingSize is that of a container whose output only passes ([Spec.FromNow]): room for a client that is slow for
	// a moment, and for lines that have not come to their end.
	passingSize = 256 << 10
	// chunk is the most that is read at once: what a pipe holds that was not widened (outSize).
	chunk = 64 << 10
	// headerSize is where the frames begin in the file: a page of its own.
	headerSize = 4096
	// attachSize is the most that a client is given at once.
	attachSize = 2 * chunk
	// frameHeader is in front of each frame: its length and, above it, its stream.
	frameHeader = 8
	// blankByte is in the place that is read into. No text in UTF-8 has it, so text that was read into the place is
	// distinguished from it by looking.
	blankByte = 0xff
)

// magic is in the first bytes of a ring's file; its last digit is the layout's version.
var magic = [8]byte{'w', 'h', 'y', 't', 'a', 'p', '0', '1'}

// stream is one of a container's outputs. A terminal has only the first.
type stream int

const (
	stdout stream = iota
	stderr
)

func (s stream) String() string { return [...]string{"stdout", "stderr"}[s] }

// header is the beginning of a ring's file. Positions count bytes of frames, headers included, since the container's
// start; they grow for ever, and their place in the file is found by the remainder.
type header struct {
	magic   [8]byte
	size    uint64
	head    atomic.Uint64 // where the newest frame ends
	tail    atomic.Uint64 // where the oldest frame begins
	dropped atomic.Uint64 // bytes of output before the tail
	reading atomic.Uint64 // head + stream + 1 while a pipe is read into the place behind head
	ended   atomic.Uint64 // 1: there will be no more output, and the log has all
	noStdin atomic.Uint64 // 1: stdin was closed for good
	cut     atomic.Uint64 // 1: the container ended while nobody took its output
	logged  [2]atomic.Uint64
	intent  intent
}

// ring is the newest output of a container, of both streams, in the order it came. It is a file that is mapped into
// memory: what is written to it is there for the next process as soon as it is written, whatever becomes of this one.
// It has no locks.
type ring struct {
	mem  []byte
	h    *header
	data []byte
	size uint64
	// blanked is up to where blankBytes were laid. They need not be laid twice.
	blanked uint64
}

// newRing makes a ring's file, in place of any that is there. Whoever finds it finds it whole.
func newRing(path string, size int) (*ring, error) {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// All the space is taken now: a disk that is full later would end the whole process at a write to mapped memory.
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(headerSize+size)); err != nil {
		_ = os.Remove(next)
		return nil, fmt.Errorf("%s: room for the container's output: %w", path, err)
	}
	r, err := mapRing(f, headerSize+size, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return nil, err
	}
	r.h.size, r.size = uint64(size), uint64(size)
	r.h.magic = magic
	if err := os.Rename(next, path); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// openRing opens a ring's file that a former process left, to go on writing.
func openRing(path string) (*ring, error) {
	r, err := mapFile(path, os.O_RDWR, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return nil, err
	}
	r.recover()
	return r, nil
}

// readRing opens the ring of a container that has ended.
func readRing(path string) (*ring, error) { return mapFile(path, os.O_RDONLY, unix.PROT_READ) }

func mapFile(path string, flag, prot int) (*ring, error) {
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < headerSize+2*chunk {
		return nil, fmt.Errorf("%s: this is not a container's output", path)
	}
	r, err := mapRing(f, int(info.Size()), prot)
	if err != nil {
		return nil, err
	}
	head, tail := r.h.head.Load(), r.h.tail.Load()
	if r.h.magic != magic || r.size != uint64(len(r.data)) || tail > head || head-tail > r.size ||
		(head|tail)%frameHeader != 0 || !r.sound(tail, head) {
		r.close()
		return nil, fmt.Errorf("%s: the container's kept output cannot be read", path)
	}
	return r, nil
}

func mapRing(f *os.File, length, prot int) (*ring, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, length, prot, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%s: map: %w", f.Name(), err)
	}
	// The header is plain memory with a fixed layout, and a mapping begins at a page.
	h := (*header)(unsafe.Pointer(&mem[0]))
	return &ring{mem: mem, h: h, data: mem[headerSize:], size: h.size}, nil
}

// chunk is the most that is read at once into this ring: each read touches that much of it, which a small ring is to
// keep small for the many containers that say little.
func (r *ring) chunk() uint64 { return min(chunk, r.size/16) }

func (r *ring) close() {
	if r.mem != nil {
		_ = unix.Munmap(r.mem)
	}
	r.mem, r.h, r.data = nil, nil, nil
}

// empty gives back the room of the frames, which nobody reads any more, where the filesystem can do that. The file's
// size and header stay.
func (r *ring) empty() { _ = unix.Madvise(r.data, unix.MADV_REMOVE) }

// sound reports whether the frames from one position to another end there. A length that leads beyond would have a
// reader go round and round.
func (r *ring) sound(from, to uint64) bool {
	if to > math.MaxInt64 {
		return false
	}
	for from < to {
		n, _ := r.frame(from)
		from += frameHeader + padded(n)
	}
	return from == to
}

// recover publishes what a process that was killed had read but not yet published. The kernel may have given it bytes
// that it did not live to count; they are counted by what is no longer blank. Only output that ends in blankBytes is
// short by these.
func (r *ring) recover() {
	head, mark := r.h.head.Load(), r.h.reading.Load()
	if mark > head && mark-head <= 2 {
		at := head + frameHeader
		n := int(r.chunk())
		for n > 0 && r.data[(at+uint64(n)-1)%r.size] == blankByte {
			n--
		}
		if n > 0 {
			r.publish(stream(mark-head-1), n)
		}
	}
	r.h.reading.Store(0)
}

// needed is where the tail must be before the next chunk can be read.
func (r *ring) needed() uint64 {
	end := r.h.head.Load() + 2*frameHeader + r.chunk()
	to, tail := max(end, r.size)-r.size, r.h.tail.Load()
	for tail < to {
		n, _ := r.frame(tail)
		tail += frameHeader + padded(n)
	}
	return tail
}

// drop lets old frames go. The position is one that needed gave.
func (r *ring) drop(to uint64) {
	for tail := r.h.tail.Load(); tail < to; tail = r.h.tail.Load() {
		n, _ := r.frame(tail)
		r.h.dropped.Add(uint64(n))
		r.h.tail.Store(tail + frameHeader + padded(n))
	}
}

// take reads what a pipe holds into the ring, a chunk at most. Old frames must have been dropped as needed says.
func (r *ring) take(s stream, read func(place [][]byte) (int, error)) (int, error) {
	head := r.h.head.Load()
	at := head + frameHeader
	r.blank(at, at+r.chunk())
	r.h.reading.Store(head + uint64(s) + 1)
	n, err := read(r.place(at, int(r.chunk())))
	if n > 0 {
		r.publish(s, n)
	} else {
		r.h.reading.Store(0)
	}
	return n, err
}

// publish makes the n bytes behind head the newest frame.
func (r *ring) publish(s stream, n int) {
	head := r.h.head.Load()
	*r.word(head) = uint64(n) | uint64(s)<<32
	r.h.head.Store(head + frameHeader + padded(n))
}

// blank lays blankBytes.
func (r *ring) blank(from, to uint64) {
	from = max(from, r.blanked)
	r.blanked = max(r.blanked, to)
	if from >= to {
		return
	}
	for _, part := range r.place(from, int(to-from)) {
		part[0] = blankByte
		for done := 1; done < len(part); done *= 2 {
			copy(part[done:], part[:done])
		}
	}
}

// frame is the length and stream of the frame at a position.
func (r *ring) frame(at uint64) (int, stream) {
	w := *r.word(at)
	return int(uint32(w)), stream(w >> 32 & 1)
}

// word is a frame's header: frames begin at multiples of its size, so it lies in one piece.
func (r *ring) word(at uint64) *uint64 {
	return (*uint64)(unsafe.Pointer(&r.data[at%r.size]))
}

// place is where n bytes from a position lie, in one or two pieces.
func (r *ring) place(at uint64, n int) [][]byte {
	from := at % r.size
	if from+uint64(n) <= r.size {
		return [][]byte{r.data[from : from+uint64(n)]}
	}
	return [][]byte{r.data[from:], r.data[:from+uint64(n)-r.size]}
}

// padded is how much room n bytes take.
func padded(n int) uint64 { return uint64(n+frameHeader-1) &^ (frameHeader - 1) }

// cursor is how far a reader of the ring is: in the frame at pos, after off of its bytes.
type cursor struct {
	pos  uint64
	off  int
	past uint64 // bytes of output before the cursor
	lost uint64 // those of them that the reader did not get, and was not notified of yet
}

// position is where the byte after a cursor is, or the frame it is in.
func (c *cursor) position() uint64 {
	if c.off == 0 {
		return c.pos
	}
	return c.pos + frameHeader + uint64(c.off)
}

// start is a cursor at the oldest output.
func (r *ring) start() *cursor {
	dropped := r.h.dropped.Load()
	return &cursor{pos: r.h.tail.Load(), lost: dropped, past: dropped}
}

// from is a cursor at the frame that a position is in, or at the end of all.
func (r *ring) from(at uint64) *cursor {
	c := r.start()
	c.lost = 0
	for r.more(c) {
		n, _ := r.frame(c.pos)
		next := c.pos + frameHeader + padded(n)
		if next > at {
			break
		}
		c.pos, c.past = next, c.past+uint64(n)
	}
	return c
}

// catchUp puts a cursor that was left behind on the oldest output.
func (r *ring) catchUp(c *cursor) {
	tail := r.h.tail.Load()
	if c.pos >= tail {
		return
	}
	dropped := r.h.dropped.Load()
	c.lost += dropped - c.past
	c.pos, c.off, c.past = tail, 0, dropped
}

// more says whether there is output after a cursor.
func (r *ring) more(c *cursor) bool { return c.pos < r.h.head.Load() }

// next copies output of one stream and moves the cursor; nothing is copied at the end. With join it goes on over frames
// of the same stream, else it gives a part of one frame, whose first byte is at the position at.
func (r *ring) next(c *cursor, into []byte, join bool) (n int, s stream, at uint64) {
	for first := true; n < len(into) && r.more(c); first = false {
		length, of := r.frame(c.pos)
		if !first && (!join || of != s) {
			break
		}
		s = of
		if first {
			at = c.pos + frameHeader + uint64(c.off)
		}
		part := min(length-c.off, len(into)-n)
		for _, p := range r.place(c.pos+frameHeader+uint64(c.off), part) {
			n += copy(into[n:], p)
		}
		c.past += uint64(part)
		if c.off += part; c.off == length {
			c.pos, c.off = c.pos+frameHeader+padded(length), 0
		}
	}
	return n, s, at
}
