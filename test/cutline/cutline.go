// SPDX-License-Identifier: Apache-2.0

package cutline

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// Line is a line to a server.
type Line struct {
	server   string
	listener net.Listener
	after    int64
	left     atomic.Int64 // bytes that may go over it before the cut
	cut      atomic.Bool
	event    func() // nil: the line itself is cut
}

// New makes a line to a server (HOST:PORT) that is cut when so many bytes have gone over it, either way, on whatever
// connection. It ends with the test.
func New(t testing.TB, server string, after int64) *Line { return At(t, server, after, nil) }

// At is [New] of a line that is whole, but for what event does, which is called in place of the cut: nothing goes on in
// that direction until it returns.
func At(t testing.TB, server string, after int64, event func()) *Line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	l := &Line{server: server, listener: listener, after: after, event: event}
	l.left.Store(after)
	go l.serve()
	return l
}

// Address is where clients reach the server by the line.
func (l *Line) Address() string { return l.listener.Addr().String() }

// Cut tells whether the line was cut, or its event called.
func (l *Line) Cut() bool { return l.cut.Load() }

// Passed is how many bytes have gone over the line, both ways.
func (l *Line) Passed() int64 { return l.after - l.left.Load() }

func (l *Line) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return // the test is over
		}
		go l.relay(client)
	}
}

// relay hands on between a client and the server, until one of them ends or the line is cut.
func (l *Line) relay(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		l.pass(server, client)
		_ = server.Close()
		_ = client.Close()
	}()
	l.pass(client, server)
}

// pass hands on what one end says, until it says nothing more or the line is cut.
func (l *Line) pass(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if l.left.Add(-int64(n)) <= 0 && l.cut.CompareAndSwap(false, true) {
			if l.event == nil {
				return
			}
			l.event()
		}
		if err != nil {
			return
		}
	}
}
