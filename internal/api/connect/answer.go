// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// answered takes the client's connection over only when the other side has agreed to switch protocols. The library's proxy takes
// it over for refusals too, which would then be on record as 101.
func answered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		next.ServeHTTP(&answerWriter{w}, req)
	})
}

type answerWriter struct{ http.ResponseWriter }

// Unwrap lets http.ResponseController reach the writer below.
func (a *answerWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush implements http.Flusher.
func (a *answerWriter) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

// Hijack implements http.Hijacker.
func (a *answerWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c := &heldConn{w: a.ResponseWriter, heard: make(chan struct{})}
	return c, bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c)), nil
}

// heldConn is the client's connection, taken over when an answer with status 101 is written to it. Any other answer is kept and
// given to the client as an ordinary one at Close. Until the first write it is used by one goroutine only.
type heldConn struct {
	w      http.ResponseWriter
	conn   net.Conn      // nil: not taken over
	early  *bufio.Reader // what the client sent before
	head   []byte        // of an answer that is not known yet, or no switch
	begun  bool          // the status is known
	closed bool
	heard  chan struct{} // closed when WriteTo has returned: the client says nothing more
	lost   atomic.Bool   // the client takes nothing more
}

// maxAnswer bounds an answer that is no switch of protocols.
const maxAnswer = 1 << 20

// Write implements io.Writer.
func (c *heldConn) Write(p []byte) (int, error) {
	if c.conn != nil {
		n, err := c.conn.Write(p)
		if err != nil {
			c.lost.Store(true)
		}
		return n, err
	}
	if len(c.head)+len(p) > maxAnswer {
		return 0, io.ErrShortWrite
	}
	c.head = append(c.head, p...)
	if c.begun {
		return len(p), nil
	}
	status, _, whole := bytes.Cut(c.head, []byte("\r\n"))
	if !whole {
		return len(p), nil
	}
	c.begun = true
	if _, code, _ := bytes.Cut(status, []byte(" ")); !bytes.HasPrefix(code, []byte("101")) { // whatever words are behind it
		return len(p), nil
	}
	if err := c.take(); err != nil {
		return 0, err
	}
	if _, err := c.conn.Write(c.head); err != nil {
		return 0, err
	}
	c.head = nil
	return len(p), nil
}

// take takes the connection over.
func (c *heldConn) take() error {
	conn, rw, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		return err
	}
	c.conn = conn
	if rw != nil && rw.Reader.Buffered() > 0 {
		c.early = rw.Reader
	}
	return nil
}

// Read implements io.Reader.
func (c *heldConn) Read(p []byte) (int, error) {
	switch {
	case c.conn == nil:
		return 0, net.ErrClosed
	case c.early != nil && c.early.Buffered() > 0:
		return c.early.Read(p[:min(len(p), c.early.Buffered())])
	}
	return c.conn.Read(p)
}

// WriteTo implements io.WriterTo: it hands on what the client says, until the client is gone. The library's proxy closes both sides when
// either copy returns. So a node that takes no more is not the end: it may have said something before it went, which is still on its way
// to the client.
func (c *heldConn) WriteTo(w io.Writer) (int64, error) {
	defer close(c.heard)
	from := struct{ io.Reader }{c}
	n, err := io.Copy(w, from)
	if err != nil {
		_, err = io.Copy(io.Discard, from)
	}
	return n, err
}

// end closes the client's connection. A client that is still there hears first that nothing more comes, and closes its side: closed at
// once, it might not hear the end of what was said, if it says something itself meanwhile. None of this is waited for without limit: not
// for a write that is stuck, which holds CloseWrite up too, nor for a node that takes nothing of what the client says.
func (c *heldConn) end() error {
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok && !c.lost.Load() {
		_ = c.conn.SetDeadline(time.Now().Add(lingering))
		if half.CloseWrite() == nil {
			select {
			case <-c.heard:
			case <-time.After(lingering):
			}
		}
	}
	return c.conn.Close()
}

// Close implements io.Closer: it answers the client, if the connection was not taken over.
func (c *heldConn) Close() error {
	if c.conn != nil {
		return c.end()
	}
	if c.closed || len(c.head) == 0 {
		return nil
	}
	c.closed = true
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(c.head)), nil)
	if err != nil {
		http.Error(c.w, "cannot read the response", http.StatusBadGateway)
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode < http.StatusOK { // no answer yet, and none follows; net/http panics below 100
		http.Error(c.w, fmt.Sprintf("the response has the status %d", resp.StatusCode), http.StatusBadGateway)
		return nil
	}
	header := c.w.Header()
	maps.Copy(header, resp.Header)
	for _, own := range []string{"Connection", "Transfer-Encoding", "Content-Length", "Upgrade"} { // about the other connection
		header.Del(own)
	}
	c.w.WriteHeader(resp.StatusCode)
	_, err = io.Copy(c.w, resp.Body)
	return err
}

// LocalAddr implements net.Conn.
func (c *heldConn) LocalAddr() net.Addr {
	if c.conn == nil {
		return &net.TCPAddr{}
	}
	return c.conn.LocalAddr()
}

// RemoteAddr implements net.Conn.
func (c *heldConn) RemoteAddr() net.Addr {
	if c.conn == nil {
		return &net.TCPAddr{}
	}
	return c.conn.RemoteAddr()
}

// SetDeadline implements net.Conn. There is nothing to wait for before the connection is taken over.
func (c *heldConn) SetDeadline(t time.Time) error {
	if c.conn == nil {
		return nil
	}
	return c.conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *heldConn) SetReadDeadline(t time.Time) error {
	if c.conn == nil {
		return nil
	}
	return c.conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *heldConn) SetWriteDeadline(t time.Time) error {
	if c.conn == nil {
		return nil
	}
	return c.conn.SetWriteDeadline(t)
}
