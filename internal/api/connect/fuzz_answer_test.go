// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// clientLine is a client's connection that can be taken over once.
type clientLine struct {
	*httptest.ResponseRecorder
	taken bool
	got   bytes.Buffer
}

// Hijack implements http.Hijacker.
func (c *clientLine) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c.taken = true
	return lineConn{c}, bufio.NewReadWriter(bufio.NewReader(bytes.NewReader(nil)), bufio.NewWriter(io.Discard)), nil
}

type lineConn struct{ c *clientLine }

func (l lineConn) Read([]byte) (int, error)       { return 0, io.EOF }
func (l lineConn) Write(p []byte) (int, error)    { return l.c.got.Write(p) }
func (lineConn) Close() error                     { return nil }
func (lineConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (lineConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (lineConn) SetDeadline(time.Time) error      { return nil }
func (lineConn) SetReadDeadline(time.Time) error  { return nil }
func (lineConn) SetWriteDeadline(time.Time) error { return nil }

// FuzzAnswer: whatever a node answers, in whatever pieces, a client gets a switch of protocols byte for byte, and anything else as an ordinary
// answer; never a part of both.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x82\x01\x01",
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nX: y\r\n\r\nno",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 1010 x\r\n\r\n", "HTTP/1.1 101", "", "\r\n101", "garbage\r\n\r\n",
		"HTTP/1.1 500 \x1b[2J\r\nContent-Length: 99999999999999999999\r\n\r\n", "HTTP/1.1 000 x\r\n\r\n", "HTTP/1.1 099 x\r\n\r\n",
		"HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
	} {
		f.Add([]byte(text), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, piece uint8) {
		answer := func(size int) *clientLine {
			c := &clientLine{ResponseRecorder: httptest.NewRecorder()}
			h := &heldConn{w: c, heard: make(chan struct{})}
			for rest := text; len(rest) > 0; {
				n := min(size, len(rest))
				if _, err := h.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			_ = h.Close() // what cannot be handed on whole is an error
			return c
		}
		whole, parts := answer(len(text)+1), answer(1+int(piece))
		if whole.taken != parts.taken || whole.Code != parts.Code || !bytes.Equal(whole.got.Bytes(), parts.got.Bytes()) ||
			!bytes.Equal(whole.Body.Bytes(), parts.Body.Bytes()) {
			t.Errorf("in pieces of %d it is %d %q, at once %d %q", 1+int(piece), parts.Code, parts.Body, whole.Code, whole.Body)
		}
		switch {
		case whole.taken && (!bytes.Equal(whole.got.Bytes(), text) || whole.Body.Len() > 0):
			t.Errorf("%q is handed on as %q", text, whole.got.Bytes())
		case !whole.taken && (whole.got.Len() > 0 || whole.Code == http.StatusSwitchingProtocols || whole.Code < 200):
			t.Errorf("answered with %d, and %q on the connection", whole.Code, whole.got.Bytes())
		}
	})
}
