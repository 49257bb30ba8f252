// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync"
)

const (
	// maxHead bounds the answer to an upgrade.
	maxHead = 16 << 10
	// maxMessage bounds what is kept of a message.
	maxMessage = 16 << 10
)

// Monitor reads what a server writes to a client whose connection is passed through, from the answer to the upgrade on.
// Of a WebSocket with channels (the first byte of a message is its channel) it keeps the last message of one channel,
// and of a refusal the beginning; of other protocols, and of what is against the protocol (RFC 6455), it keeps nothing.
// It delays and changes nothing.
//
// Libraries read a WebSocket from a connection, which they answer, and wait until a message is there. This reads bytes
// as they pass by.
type Monitor struct {
	channel byte

	mu      sync.Mutex
	off     bool   // this is not a WebSocket, or it is over, or cannot be understood
	begun   bool   // the answer's head is over
	head    []byte // of the answer, then of a frame
	left    uint64 // bytes of the frame's payload to come
	frame   frame
	open    bool // a message is not complete: the next frame continues it
	first   bool // the next byte of the message is its channel
	listen  bool // the message is of the channel that is listened to
	last    []byte
	refused []byte
}

// NewMonitor makes a monitor that listens to one channel.
func NewMonitor(channel byte) *Monitor { return &Monitor{channel: channel} }

// Conn is a connection to a client: what is written to it, the monitor reads.
func (m *Monitor) Conn(client net.Conn) net.Conn { return &monitored{Half: Half{client}, by: m} }

type monitored struct {
	Half
	by *Monitor
}

// Write implements io.Writer.
func (c *monitored) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.by.read(p[:n])
	return n, err
}

// Last is the last message of the channel, without its first byte, as far as it has come; nil if there was none. What
// is longer than 16 KiB is cut.
func (m *Monitor) Last() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.last)
}

// Refusal is the beginning of an answer that is not an upgrade, its head included, up to 16 KiB of it; nil if there was
// none.
func (m *Monitor) Refusal() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.refused)
}

func (m *Monitor) read(p []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.refused) > 0 {
		m.refused = append(m.refused, p[:min(len(p), maxHead-len(m.refused))]...)
	}
	for len(p) > 0 && !m.off {
		switch {
		case !m.begun:
			p = m.answer(p)
		case m.left > 0:
			p = m.payload(p)
		default:
			m.head, p = append(m.head, p[0]), p[1:]
			m.frameHead()
		}
	}
}

// answer takes bytes of the answer's head.
func (m *Monitor) answer(p []byte) (rest []byte) {
	was := len(m.head)
	m.head = append(m.head, p...)
	end := bytes.Index(m.head, []byte("\r\n\r\n"))
	if end < 0 {
		m.off = len(m.head) > maxHead
		return nil
	}
	m.begun = true
	m.off = !bytes.Contains(bytes.ToLower(m.head[:end]), []byte("upgrade: websocket"))
	if status, _, _ := bytes.Cut(m.head, []byte("\r\n")); !bytes.Contains(status, []byte(" 101 ")) {
		m.off, m.refused = true, m.head[:min(len(m.head), maxHead)]
	}
	m.head = nil
	return p[end+4-was:]
}

// frameHead looks whether a frame's head is complete, and what it says of the frame.
func (m *Monitor) frameHead() {
	f, complete, valid := parseFrame(m.head)
	if !complete && valid {
		return
	}
	m.head = m.head[:0]
	switch {
	case !valid, f.masked, f.opcode == opClose: // only clients mask
		m.off = true
		return
	case f.control():
	case (f.opcode == opContinuation) != m.open:
		m.off = true
		return
	default:
		if !m.open {
			m.first, m.listen = true, false
		}
		m.open = !f.final
	}
	m.frame, m.left = f, f.size
}

// payload takes bytes of a frame's payload. A control frame may come between the frames of a message.
func (m *Monitor) payload(p []byte) (rest []byte) {
	n := min(uint64(len(p)), m.left)
	mine, rest := p[:n], p[n:]
	m.left -= n
	if m.frame.control() {
		return rest
	}
	if m.first {
		m.first, m.listen = false, mine[0] == m.channel
		mine = mine[1:]
		if m.listen {
			m.last = m.last[:0]
		}
	}
	if m.listen {
		m.last = append(m.last, mine[:min(len(mine), maxMessage-len(m.last))]...)
	}
	return rest
}

// The kinds of frames that there are (RFC 6455, 5.2).
const (
	opContinuation = 0x0
	opBinary       = 0x2
	opClose        = 0x8
	opPong         = 0xa
)

// frame is what the head of a frame says.
type frame struct {
	opcode        byte
	final, masked bool
	size          uint64
}

// control reports whether it is a frame for the protocol's own use.
func (f frame) control() bool { return f.opcode >= opClose }

// parseFrame reads the head of a frame as far as it has come, without the mask's key. (Pure.)
func parseFrame(head []byte) (f frame, complete, valid bool) {
	if len(head) < 2 {
		return f, false, true
	}
	f = frame{opcode: head[0] & 0x0f, final: head[0]&0x80 != 0, masked: head[1]&0x80 != 0, size: uint64(head[1] & 0x7f)}
	switch {
	// nobody has asked for an extension
	case head[0]&0x70 != 0, f.opcode > opBinary && f.opcode < opClose, f.opcode > opPong:
		return f, false, false
	case f.control() && (!f.final || f.size > 125):
		return f, false, false
	case f.size == 126 && len(head) == 4:
		f.size = uint64(binary.BigEndian.Uint16(head[2:]))
	case f.size == 127 && len(head) == 10:
		if f.size = binary.BigEndian.Uint64(head[2:]); f.size>>63 != 0 {
			return f, false, false
		}
	case f.size >= 126:
		return f, false, true
	}
	return f, true, true
}
