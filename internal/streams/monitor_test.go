// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

const upgraded = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

// frameOf is a frame of a server; b is its first byte: final or not, and its kind.
func frameOf(b byte, payload string) string {
	head := []byte{b}
	switch n := len(payload); {
	case n < 126:
		head = append(head, byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(n))
	}
	return string(head) + payload
}

// monitor has a monitor of channel 3 read something in pieces of any size.
func monitor(t testing.TB, said string, piece int) *Monitor {
	t.Helper()
	m := NewMonitor(3)
	conn := m.Conn(&recording{})
	for rest := []byte(said); len(rest) > 0; {
		n := 1 + rand.IntN(min(len(rest), piece))
		if _, err := conn.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	return m
}

// IX-01: the last message of a channel is known, in whatever frames it comes, and nothing that is written to other
// channels is taken for it.
func TestMonitor(t *testing.T) {
	long := string(bytes.Repeat([]byte("\x82\x05\x03lies"), 20_000))
	for name, c := range map[string]struct{ said, want string }{
		"one":             {upgraded + frameOf(0x82, "\x03end"), "end"},
		"text":            {upgraded + frameOf(0x81, "\x03end"), "end"},
		"the last of two": {upgraded + frameOf(0x82, "\x03begun") + frameOf(0x82, "\x03end"), "end"},
		"before it is closed": {upgraded + frameOf(0x82, "\x03end") + frameOf(0x88, "\x03\xe8") +
			frameOf(0x82, "\x03more"), "end"},
		"lies in between": {upgraded + frameOf(0x82, "\x01"+long) + frameOf(0x82, "\x03end") +
			frameOf(0x82, "\x02"+long[:300]), "end"},
		"in three frames":         {upgraded + frameOf(0x02, "\x03e") + frameOf(0x00, "n") + frameOf(0x80, "d"), "end"},
		"lies in the rest of one": {upgraded + frameOf(0x02, "\x01out") + frameOf(0x80, "\x03lie"), ""},
		"a ping within": {upgraded + frameOf(0x02, "\x03e") + frameOf(0x89, "\x03ping") + frameOf(0x80, "nd"),
			"end"},
		"a ping":         {upgraded + frameOf(0x8a, "\x03lie"), ""},
		"a late channel": {upgraded + frameOf(0x02, "") + frameOf(0x00, "") + frameOf(0x80, "\x03end"), "end"},
		"empty": {upgraded + frameOf(0x82, "\x03end") + frameOf(0x82, "") + frameOf(0x82, "\x01out"),
			"end"},
		"not continued":       {upgraded + frameOf(0x02, "\x01out") + frameOf(0x82, "\x03lie"), ""},
		"nothing to continue": {upgraded + frameOf(0x80, "\x03lie"), ""},
		"masked":              {upgraded + "\x82\x84\x03lie\x00\x00\x00\x00", ""},
		"compressed":          {upgraded + frameOf(0xc2, "\x03lie"), ""},
		"too long to be":      {upgraded + "\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x04\x03lie", ""},
		"SPDY":                {switching + frameOf(0x82, "\x03lie"), ""},
		"nothing":             {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{1, 2, 7, 4096, 1 << 20} {
				if piece < 7 && len(c.said) > 1000 {
					continue
				}
				m := monitor(t, c.said, piece)
				if got := m.Last(); string(got) != c.want {
					t.Errorf("pieces of up to %d: %q, want %q", piece, got, c.want)
				}
				if m.Refusal() != nil {
					t.Errorf("refused: %q", m.Refusal())
				}
			}
		})
	}
}

// IX-01: what a server says instead of an upgrade is known, and no more of it is kept than may be.
func TestMonitorRefusal(t *testing.T) {
	said := "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 100000\r\n\r\n" + string(bytes.Repeat([]byte("no "), 33_333))
	for _, piece := range []int{1, 100, 1 << 20} {
		if m := monitor(t, said, piece); string(m.Refusal()) != said[:maxHead] || m.Last() != nil {
			t.Errorf("pieces of up to %d: %d bytes, %q", piece, len(m.Refusal()), m.Last())
		}
	}
	said = upgraded + frameOf(0x82, "\x03"+string(make([]byte, 100_000)))
	if m := monitor(t, said, 1000); len(m.Last()) != maxMessage {
		t.Errorf("%d bytes of a message are kept", len(m.Last()))
	}
}

// taker is a response of which a connection can be taken.
type taker struct {
	http.ResponseWriter
	conn net.Conn
	rest string // what the client said with its request
}

// Hijack implements http.Hijacker.
func (w taker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	from := bufio.NewReader(io.MultiReader(strings.NewReader(w.rest), w.conn))
	if len(w.rest) > 0 {
		if _, err := from.Peek(len(w.rest)); err != nil {
			return nil, nil, err
		}
	}
	return w.conn, bufio.NewReadWriter(from, bufio.NewWriter(w.conn)), nil
}

// recording is a connection that keeps what is written to it.
type recording struct {
	net.Conn
	said bytes.Buffer
}

func (c *recording) Write(p []byte) (int, error)        { return c.said.Write(p) }
func (c *recording) SetDeadline(t time.Time) error      { return nil }
func (c *recording) SetWriteDeadline(t time.Time) error { return nil }

// FuzzMonitor has a library write messages, in frames of any size and with control frames between them: the monitor
// knows the last of its channel. ops tells, byte after byte, what is done.
func FuzzMonitor(f *testing.F) {
	f.Add([]byte("\x03\x02\x01\x00\x07\x83\x03\x40\x03"), uint8(1))
	f.Add(bytes.Repeat([]byte("\x03\xff\x01\x80\x09"), 40), uint8(255))
	f.Fuzz(func(t *testing.T, ops []byte, piece uint8) {
		conn := &recording{}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket",
			"Sec-Websocket-Version": "13", "Sec-Websocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
			r.Header.Set(k, v)
		}
		c, err := (&websocket.Upgrader{WriteBufferSize: 64}).Upgrade(taker{ResponseWriter: httptest.NewRecorder(),
			conn: conn}, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		var want []byte
		for len(ops) >= 2 {
			channel, frames, sizes := ops[0]%5, int(ops[1]%4), ops[2:min(len(ops), 6)]
			message := []byte{channel}
			w, err := c.NextWriter(websocket.BinaryMessage)
			if err != nil {
				t.Fatal(err)
			}
			w.Write(message)
			for i, size := range sizes[:min(len(sizes), frames)] {
				part := bytes.Repeat([]byte{size}, int(size)*3)
				w.Write(part)
				message = append(message, part...)
				if i%2 == 1 {
					c.WriteControl(websocket.PingMessage, part[:min(len(part), 100)], time.Time{})
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if channel == 3 {
				want = message[1:]
			}
			ops = ops[2:]
		}
		if m := monitor(t, conn.said.String(), 1+int(piece)); !bytes.Equal(m.Last(), want) {
			t.Errorf("%q, want %q", m.Last(), want)
		}
	})
}

// FuzzMonitorBytes: whatever is written to a client, the monitor takes it, and keeps no more than it may.
func FuzzMonitorBytes(f *testing.F) {
	f.Add([]byte(upgraded + "\x82\x05\x03abcd"))
	f.Add([]byte("HTTP/1.1 502 x\r\n\r\n"))
	f.Fuzz(func(t *testing.T, p []byte) {
		m := NewMonitor(3)
		for chunk := range bytes.SplitSeq(p, []byte("x")) {
			m.read(chunk)
		}
		if n := len(m.last) + len(m.refused) + len(m.head); n > maxHead+len(p) || len(m.last) > maxMessage ||
			len(m.refused) > maxHead {
			t.Errorf("%d bytes are kept", n)
		}
	})
}
