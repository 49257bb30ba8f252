// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/http"
)

// Take takes a client's connection over from net/http. What the client sent before that is read from it first. The
// caller closes it.
func Take(w http.ResponseWriter) (net.Conn, error) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	conn = Gather(conn)
	if rw == nil || rw.Reader.Buffered() == 0 {
		return conn, nil
	}
	early, err := rw.Reader.Peek(rw.Reader.Buffered())
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &begun{Half: Half{conn}, early: bytes.Clone(early)}, nil
}

// begun is a connection of which something was read already.
type begun struct {
	Half
	early []byte
}

// Read implements io.Reader.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.early) > 0 {
		n := copy(p, b.early)
		b.early = b.early[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}

// Wrap is a response to which a handler may take the connection over: it gets what wrap makes of it. There is no
// Unwrap: Kubernetes' streaming library looks through responses for the one of net/http, and takes the connection over
// there, behind our back.
func Wrap(w http.ResponseWriter, wrap func(net.Conn) net.Conn) http.ResponseWriter {
	return &wrapped{ResponseWriter: w, wrap: wrap}
}

type wrapped struct {
	http.ResponseWriter
	wrap func(net.Conn) net.Conn
}

// Flush implements http.Flusher.
func (w *wrapped) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack implements http.Hijacker.
func (w *wrapped) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, err := Take(w.ResponseWriter)
	if err != nil {
		return nil, nil, err
	}
	conn = w.wrap(conn)
	return conn, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn)), nil
}

// Watch is a response that signals when the connection that a handler took over has come to its end: when the handler
// has closed it, or when it cannot be read any more. The request's context does not show that: it ends with the
// handler. lost may be called more than once, by several goroutines.
func Watch(w http.ResponseWriter, lost func()) http.ResponseWriter {
	return Wrap(w, func(conn net.Conn) net.Conn { return &watched{Half: Half{conn}, lost: lost} })
}

type watched struct {
	Half
	lost func()
}

// Read implements io.Reader.
func (c *watched) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.lost()
	}
	return n, err
}

// Close implements io.Closer.
func (c *watched) Close() error {
	defer c.lost()
	return c.Conn.Close()
}
