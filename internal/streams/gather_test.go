// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counting is a connection that counts what goes through the kernel.
type counting struct {
	net.Conn
	reads, writes *atomic.Int64
}

func (c counting) Read(p []byte) (int, error)  { c.reads.Add(1); return c.Conn.Read(p) }
func (c counting) Write(p []byte) (int, error) { c.writes.Add(1); return c.Conn.Write(p) }

// counted is a listener of such connections.
type counted struct {
	net.Listener
	reads, writes atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return counting{c, &l.reads, &l.writes}, err
}

// gathering is both ends of a TLS connection that gathers records, and what counts the calls of the server's.
func gathering(t *testing.T) (client, server net.Conn, calls *counted) {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil) // for its certificate
	srv.StartTLS()
	t.Cleanup(srv.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	calls = &counted{Listener: l}
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := tls.NewListener(Gathering(calls), &tls.Config{Certificates: srv.TLS.Certificates}).Accept()
		if err != nil {
			t.Error(err)
		} else if err = c.(*tls.Conn).Handshake(); err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	secure := tls.Client(Records(raw), &tls.Config{InsecureSkipVerify: true})
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	client, server = Gather(secure), Gather(<-accepted)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server, calls
}

// PL-09: what is much goes through the kernel in large pieces, comes whole and in order, and not a byte of it waits for
// what has not been said yet.
func TestGather(t *testing.T) {
	client, server, calls := gathering(t)
	text := make([]byte, 20<<20)
	source := rand.NewChaCha8([32]byte{'t'})
	_, _ = source.Read(text)
	for name, c := range map[string]struct{ from, to net.Conn }{"to the client": {server, client},
		"to the server": {client, server}} {
		calls.reads.Store(0)
		calls.writes.Store(0)
		sent := make(chan error, 1)
		go func() {
			rest := text
			for err := error(nil); ; {
				if len(rest) == 0 || err != nil {
					sent <- err
					return
				}
				n := min(len(rest), 1+int(rand.Int64N(300<<10)))
				_, err = c.from.Write(rest[:n])
				rest = rest[n:]
			}
		}()
		got := make([]byte, 0, len(text))
		buf := make([]byte, muchAtOnce)
		for len(got) < len(text) {
			n, err := c.to.Read(buf)
			if err != nil {
				t.Fatal(name, err)
			}
			got = append(got, buf[:n]...)
		}
		if err := <-sent; err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%s: %v; what came is not what was sent", name, err)
		}
		// TLS by itself: two reads or one write for each record
		if r, w := calls.reads.Load(), calls.writes.Load(); r > 800 || w > 400 {
			t.Errorf("%s: %d reads and %d writes of the server for %d records", name, r, w, len(text)/recordSize)
		}
	}
}

// A word comes at once, however much was said before it, and so do the end and a deadline.
func TestGatherWaitsForNothing(t *testing.T) {
	client, server, _ := gathering(t)
	buf := make([]byte, muchAtOnce)
	for _, n := range []int{1, recordSize, recordSize + 1, 300 << 10, 5, 1 << 20, 3} {
		sent := make(chan error, 1)
		go func() { _, err := client.Write(make([]byte, n)); sent <- err }()
		for come := 0; come < n; {
			m, err := server.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			come += m
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	_ = server.SetReadDeadline(time.Now())
	if _, err := server.Read(buf); err == nil {
		t.Error("a read outlives its deadline")
	}
	_ = server.SetReadDeadline(time.Time{})
	if _, err := client.Write(buf); err != nil {
		t.Fatal(err)
	}
	if err := CloseWrite(client); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(server); err != nil || len(rest) != len(buf) {
		t.Errorf("%d bytes after a deadline, %v", len(rest), err)
	}
}

// A peer that takes nothing is noticed by a deadline, and nothing is written after what was lost.
func TestGatherStuck(t *testing.T) {
	client, _, _ := gathering(t)
	_ = client.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	var err error
	for range 200 {
		if _, err = client.Write(make([]byte, muchAtOnce)); err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("nobody reads, and all is sent")
	}
	_ = client.SetWriteDeadline(time.Time{})
	if _, err := client.Write(make([]byte, muchAtOnce)); err == nil {
		t.Error("something follows what was lost")
	}
}

// large is a connection that notifies when a write of more than a record is on its way.
type large struct {
	net.Conn
	begun chan struct{}
	once  sync.Once
}

func (l *large) Write(p []byte) (int, error) {
	if len(p) > 2*recordSize {
		l.once.Do(func() { close(l.begun) })
	}
	return l.Conn.Write(p)
}

// A connection is closed at once while a write to a peer that reads nothing hangs, and the write ends.
func TestGatherClosedWhileStuck(t *testing.T) {
	srv := httptest.NewUnstartedServer(nil) // for its certificate
	srv.StartTLS()
	defer srv.Close()
	near, far := net.Pipe()
	defer far.Close()
	shaken := make(chan error, 1)
	go func() { // and then it reads nothing
		shaken <- tls.Server(far, &tls.Config{Certificates: srv.TLS.Certificates,
			SessionTicketsDisabled: true}).Handshake()
	}()
	below := &large{Conn: near, begun: make(chan struct{})}
	secure := tls.Client(Records(below), &tls.Config{InsecureSkipVerify: true})
	if err := errors.Join(secure.Handshake(), <-shaken); err != nil {
		t.Fatal(err)
	}
	c := Gather(secure)
	wrote := make(chan error, 1)
	// so much that all of it is gathered, and package tls takes it for written
	go func() { _, err := c.Write(make([]byte, gatherSize/2)); wrote <- err }()
	<-below.begun
	began := time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-wrote; err == nil {
		t.Error("nobody reads, and all is sent")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it was closed after %s", took)
	}
	if _, err := c.Write(make([]byte, muchAtOnce)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write after that: %v", err)
	}
}

// What is no TLS connection of this package's is left as it is.
func TestGatherOthers(t *testing.T) {
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	secure := tls.Client(one, &tls.Config{InsecureSkipVerify: true})
	if Gather(one) != one || Gather(secure) != net.Conn(secure) {
		t.Error("it is wrapped")
	}
}
