// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"

	"github.com/wherryproject/wherry/internal/api/debugrun"
)

// overheard is a response that listens for the last word on a WebSocket's error channel: how the command ended. On a connection
// that is passed through as SPDY it hears nothing but a refusal.
type overheard struct {
	http.ResponseWriter
	conn *overheardConn

	code int    // of an answer that is no upgrade
	said []byte // its body's beginning
}

// WriteHeader implements http.ResponseWriter.
func (o *overheard) WriteHeader(code int) {
	o.code = code
	o.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (o *overheard) Write(p []byte) (int, error) {
	o.said = append(o.said, p[:min(len(p), maxHead-len(o.said))]...)
	return o.ResponseWriter.Write(p)
}

// Hijack implements http.Hijacker.
func (o *overheard) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(o.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	o.conn = &overheardConn{Conn: conn}
	return o.conn, bufio.NewReadWriter(rw.Reader, bufio.NewWriter(o.conn)), nil
}

// Flush implements http.Flusher.
func (o *overheard) Flush() { _ = http.NewResponseController(o.ResponseWriter).Flush() }

// end is how the command ended, as far as it was heard.
func (o *overheard) end() End {
	switch {
	case o.conn == nil && o.code >= http.StatusBadRequest:
		return End{Reason: debugrun.Refused, Message: strings.TrimSpace(string(o.said))}
	case o.conn == nil:
		return End{}
	}
	if refused := o.conn.frames.refused; len(refused) > 0 {
		return endOfRefused(refused)
	}
	var status metav1.Status
	if json.Unmarshal(o.conn.frames.word, &status) != nil {
		return End{}
	}
	return endOf(&status)
}

// endOf reads an exit code from the status that ends a stream.
func endOf(status *metav1.Status) End {
	if status.Status == metav1.StatusSuccess {
		return End{ExitCode: new(int32)}
	}
	if status.Reason == remotecommand.NonZeroExitCodeReason && status.Details != nil {
		for _, c := range status.Details.Causes {
			if c.Type != remotecommand.ExitCodeCauseType {
				continue
			}
			if code, err := strconv.ParseInt(c.Message, 10, 32); err == nil {
				return End{ExitCode: new(int32(code))}
			}
		}
	}
	return End{Reason: string(status.Reason), Message: status.Message}
}

// endOfRefused reads the words of an answer that is no upgrade.
func endOfRefused(answer []byte) End {
	end := End{Reason: debugrun.Refused}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), nil)
	if err != nil {
		return end
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(resp.Body) // as much as was kept
	end.Message = strings.TrimSpace(string(said))
	return end
}

// overheardConn shows what is written to a connection to a frame reader.
type overheardConn struct {
	net.Conn
	frames frames
}

// Write implements io.Writer.
func (c *overheardConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.frames.take(p[:n])
	return n, err
}

// CloseWrite tells the client that nothing more comes, if its connection can.
func (c *overheardConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

const (
	// maxHead bounds the answer to an upgrade.
	maxHead = 16 * 1024
	// maxWord bounds what is kept of a message on the error channel.
	maxWord = 16 * 1024
)

// frames reads a server's side of a WebSocket, answer first, and keeps the last message on the error channel. It copies nothing
// of the other channels.
type frames struct {
	off    bool   // this is no WebSocket, or not to be understood
	begun  bool   // the answer's head is over
	head   []byte // of the answer, then of a frame
	left   uint64 // bytes of the frame's payload to come
	first  bool   // the next byte of payload is the channel's
	listen bool   // the frame is of the error channel
	word   []byte
	// refused is the beginning of an answer that is no upgrade.
	refused []byte
}

func (f *frames) take(p []byte) {
	if len(f.refused) > 0 && len(f.refused)+len(p) <= maxHead {
		f.refused = append(f.refused, p...)
	}
	for len(p) > 0 && !f.off {
		switch {
		case !f.begun:
			p = f.answer(p)
		case f.left > 0:
			p = f.payload(p)
		default:
			f.head, p = append(f.head, p[0]), p[1:]
			f.frame()
		}
	}
}

// answer takes bytes of the answer's head.
func (f *frames) answer(p []byte) []byte {
	was := len(f.head)
	f.head = append(f.head, p...)
	end := bytes.Index(f.head, []byte("\r\n\r\n"))
	if end < 0 {
		f.off = len(f.head) > maxHead
		return nil
	}
	f.begun = true
	f.off = !bytes.Contains(bytes.ToLower(f.head[:end]), []byte("upgrade: websocket"))
	if status, _, _ := bytes.Cut(f.head, []byte("\r\n")); !bytes.Contains(status, []byte(" 101 ")) {
		f.off, f.refused = true, f.head
	}
	f.head = nil
	return p[end+4-was:]
}

// frame looks whether a frame's head is complete.
func (f *frames) frame() {
	if len(f.head) < 2 {
		return
	}
	size := uint64(f.head[1] & 0x7f)
	switch {
	case size == 126 && len(f.head) == 4:
		size = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case size == 127 && len(f.head) == 10:
		size = binary.BigEndian.Uint64(f.head[2:])
	case size >= 126:
		return
	}
	const binaryOrText = 0x3
	f.left, f.first, f.listen = size, f.head[0]&0x0f&^binaryOrText == 0, false
	f.head = f.head[:0]
}

// payload takes bytes of a frame's payload.
func (f *frames) payload(p []byte) []byte {
	n := min(uint64(len(p)), f.left)
	mine, rest := p[:n], p[n:]
	f.left -= n
	if f.first {
		f.first, f.listen = false, mine[0] == remotecommand.StreamErr
		mine = mine[1:]
		if f.listen {
			f.word = f.word[:0]
		}
	}
	if f.listen && len(f.word)+len(mine) <= maxWord {
		f.word = append(f.word, mine...)
	}
	return rest
}
