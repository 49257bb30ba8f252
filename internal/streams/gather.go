// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"crypto/tls"
	"net"
	"sync"
)

const (
	// gatherSize is how many bytes of TLS records go through the kernel at once, at most.
	gatherSize = 256 << 10
	// recordSize is the most that a TLS record holds of what is sent. A record that is alone is not gathered.
	recordSize = 16 << 10
)

// Gathering is l whose connections, if TLS is spoken on them, can gather records once they are taken over ([Take]). By
// itself TLS makes a call of the kernel for each record of 16 KiB, which wakes whoever reads: for what is a gigabyte,
// that costs more than the encryption.
func Gathering(l net.Listener) net.Listener { return &gatheringListener{l, &sync.Pool{}} }

type gatheringListener struct {
	net.Listener
	spare *sync.Pool
}

// Accept implements net.Listener.
func (l *gatheringListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &records{Half: Half{conn}, spare: l.spare}, nil
}

// Records is a connection for a TLS client to be made on, which [Gather] can make gather its records.
func Records(c net.Conn) net.Conn { return &records{Half: Half{c}, spare: &sync.Pool{}} }

// Gather makes a connection whose large reads and writes are many records each, if TLS is spoken on one that
// [Gathering] or [Records] has made; else it is c itself. Whoever has it is the only one to read from it. A read gives
// what is there and waits for no more than that.
func Gather(c net.Conn) net.Conn {
	secure, ok := c.(*tls.Conn)
	if !ok {
		return c
	}
	below, ok := secure.NetConn().(*records)
	if !ok {
		return c
	}
	below.wide = true
	return &gathered{Half: Half{c}, secure: secure, below: below}
}

// gathered is a TLS connection whose records are gathered.
type gathered struct {
	Half
	secure  *tls.Conn
	below   *records
	reading sync.Mutex
	writing sync.Mutex

	mu     sync.Mutex
	writes int // large ones that are in progress
	closed bool
}

// Read implements net.Conn.
func (g *gathered) Read(p []byte) (n int, err error) {
	g.reading.Lock()
	defer g.reading.Unlock()
	n, err = g.secure.Read(p)
	if err != nil || n == 0 {
		return n, err
	}
	g.below.atOnce = true
	for n < len(p) && err == nil {
		var more int
		more, err = g.secure.Read(p[n:])
		n += more
	}
	g.below.atOnce = false
	return n, nil // the error is that there is no more, or will be there again
}

// Write implements net.Conn.
func (g *gathered) Write(p []byte) (int, error) {
	if len(p) <= recordSize {
		return g.secure.Write(p)
	}
	if !g.begin() {
		return 0, net.ErrClosed
	}
	defer g.end()
	g.writing.Lock()
	defer g.writing.Unlock()
	g.below.hold()
	n, err := g.secure.Write(p)
	if rerr := g.below.release(); err == nil && rerr != nil {
		return 0, rerr
	}
	return n, err
}

func (g *gathered) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.writes++
	}
	return !g.closed
}

func (g *gathered) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes--
}

// Close implements net.Conn. As by package tls, it interrupts a write that hangs: that one may be at what was gathered,
// which package tls takes for written, and would have the last word wait behind it.
func (g *gathered) Close() error {
	g.mu.Lock()
	g.closed = true
	hangs := g.writes > 0
	g.mu.Unlock()
	if hangs {
		return g.below.Close()
	}
	return g.secure.Close()
}

// records is a connection on which a tls.Conn reads and writes its records.
type records struct {
	Half
	spare *sync.Pool // of *[gatherSize]byte

	// of who reads
	wide   bool              // much may be read at once
	atOnce bool              // nothing is waited for
	read   *[gatherSize]byte // nil: nothing is there
	here   []byte            // of read, what was not given on

	mu   sync.Mutex
	held bool              // what is written is kept, until release
	kept *[gatherSize]byte // nil: nothing is kept
	size int
	err  error // of what was kept: none of what follows would be understood
}

// noneHere is the answer to a read that does not wait. To package tls it is an error that passes, as a deadline is: the
// part of a record that it has stays.
type noneHere struct{}

func (noneHere) Error() string   { return "nothing more is there" }
func (noneHere) Timeout() bool   { return true }
func (noneHere) Temporary() bool { return true }

// Read implements net.Conn.
func (r *records) Read(p []byte) (int, error) {
	switch {
	case len(r.here) > 0:
	case r.atOnce:
		return 0, noneHere{}
	case r.read == nil:
		n, err := r.Conn.Read(p)
		if r.wide && n == len(p) && n >= recordSize { // more is waiting: this is one of those that say much
			r.read = take(r.spare)
		}
		return n, err
	default:
		n, err := r.Conn.Read(r.read[:])
		if n == 0 {
			return 0, err
		}
		r.here = r.read[:n] // an error comes again
	}
	n := copy(p, r.here)
	if r.here = r.here[n:]; len(r.here) == 0 && cap(r.here) > gatherSize-recordSize {
		r.spare.Put(r.read) // so little came at once that no room is needed for it
		r.read, r.here = nil, nil
	}
	return n, nil
}

// Write implements net.Conn.
func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil:
		return 0, r.err
	case !r.held:
		return r.Conn.Write(p)
	}
	if r.size+len(p) > gatherSize {
		if r.flush(); r.err != nil {
			return 0, r.err
		}
	}
	if len(p) > gatherSize {
		return r.Conn.Write(p)
	}
	if r.kept == nil {
		r.kept = take(r.spare)
	}
	r.size += copy(r.kept[r.size:], p)
	return len(p), nil
}

// hold keeps what is written from now on.
func (r *records) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = true
}

// release writes what was kept.
func (r *records) release() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = false
	r.flush()
	if r.kept != nil {
		r.spare.Put(r.kept)
		r.kept = nil
	}
	return r.err
}

func (r *records) flush() {
	if r.size > 0 && r.err == nil {
		_, r.err = r.Conn.Write(r.kept[:r.size])
	}
	r.size = 0
}

// take gives room from a pool.
func take(spare *sync.Pool) *[gatherSize]byte {
	if room, ok := spare.Get().(*[gatherSize]byte); ok {
		return room
	}
	return new([gatherSize]byte)
}
