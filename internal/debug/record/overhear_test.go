// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/streams"
)

// frameOf is a message of a server on a channel.
func frameOf(channel byte, text string) []byte {
	payload := append([]byte{channel}, text...)
	head := []byte{0x82}
	switch n := len(payload); {
	case n < 126:
		head = append(head, byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(n))
	}
	return append(head, payload...)
}

const upgraded = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

// IX-01: the exit code is read from the error channel whatever the command writes, in whatever pieces it is sent.
func TestOverhearing(t *testing.T) {
	const exit7 = `{"metadata":{},"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`
	fake := string(frameOf(3, `{"status":"Success"}`))
	for name, c := range map[string]struct {
		said   string
		code   int32 // -1: none
		reason string
	}{
		"success":         {upgraded + string(frameOf(1, "out")) + string(frameOf(3, `{"status":"Success"}`)), 0, ""},
		"a code":          {upgraded + string(frameOf(1, "")) + string(frameOf(3, exit7)) + "\x88\x02\x03\xe8", 7, ""},
		"lies in between": {upgraded + string(frameOf(1, fake)) + string(frameOf(3, exit7)), 7, ""},
		"long output": {upgraded + string(frameOf(1, strings.Repeat(fake, 100))) +
			string(frameOf(2, strings.Repeat(fake, 9000))) + string(frameOf(3, exit7)), 7, ""},
		"lies go on": {upgraded + "\x02\x04\x01out" + "\x80\x15\x03" + `{"status":"Success"}`, -1, ""},
		"only lies":  {upgraded + string(frameOf(1, fake)), -1, ""},
		"an error": {upgraded +
			string(frameOf(3, `{"status":"Failure","reason":"InternalError","message":"broken"}`)), -1,
			"InternalError"},
		"SPDY":    {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\n\r\n" + fake, -1, ""},
		"refused": {"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 7\r\n\r\nno pull", -1, debugrun.Refused},
		"nothing": {"", -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				w, o := overhear(taken{conn: deaf{}})
				conn, err := streams.Take(w)
				if err != nil {
					t.Fatal(err)
				}
				for rest := []byte(c.said); len(rest) > 0; {
					n := 1 + rand.IntN(min(len(rest), 1+rand.IntN(4096)))
					conn.Write(rest[:n])
					rest = rest[n:]
				}
				got := o.end()
				if got.Reason != c.reason || (got.ExitCode == nil) != (c.code < 0) ||
					got.ExitCode != nil && *got.ExitCode != c.code {
					t.Fatalf("%+v", got)
				}
			}
		})
	}
}

// IX-01: a refusal is recorded by its message, be it a Status or words.
func TestRefusalText(t *testing.T) {
	for body, want := range map[string]string{
		"no pull\n": "no pull",
		`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"container \"a\": it has ended","code":500}`: `container "a": it has ended`,
		`{"kind":"Other"}`: `{"kind":"Other"}`,
		"":                 "",
	} {
		if got := refusalText([]byte(body)); got != want {
			t.Errorf("%q is recorded as %q", body, got)
		}
	}
}

// deaf is a client's connection.
type deaf struct{ net.Conn }

func (deaf) Write(p []byte) (int, error) { return len(p), nil }

// taken is a response whose connection can be had.
type taken struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (w taken) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.conn, nil, nil }
