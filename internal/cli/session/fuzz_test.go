// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // RFC 6455 has it
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/gorilla/websocket"
)

// FuzzListen: whatever a server says in a session, byte by byte, the user gets no more output than it sent, and in the end either how the
// command did or why nobody knows.
func FuzzListen(f *testing.F) {
	frame := func(head byte, payload string) string { return string([]byte{head, byte(len(payload))}) + payload }
	for _, text := range []string{
		frame(0x82, "\x01out") + frame(0x82, "\x02err") + frame(0x82, "\x03{\"status\":\"Success\"}"),
		frame(0x82,
			"\x03{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\",\"message\":\"7\"}]}}"),
		frame(0x82, "\x03{\"status\":\"Fail") + frame(0x82,
			"\x03ure\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\",\"message\":\"-1\"}]}}"),
		frame(0x02, "\x01a") + frame(0x00, "b") + frame(0x80, "c") + frame(0x88, "\x03\xe8"), frame(0x81, "text"), frame(0x82,
			""), frame(0x89, "ping") + frame(0x8a, "pong"),
		"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", "\x82\x7e\x00\x05\x01abc", "", "\xf2\x01\x01", frame(0x82, "\xff\x01"),
		frame(0x82, "\x03{\"status\":\"Failure\",\"message\":\"\x1b[2J\"}"),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		ours, theirs := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- say(theirs, said) }()
		conn, _, err := websocket.NewClient(ours, &url.URL{Scheme: "ws", Host: "server", Path: "/exec"},
			http.Header{"Sec-Websocket-Protocol": {protocol}}, 1024, 1024)
		if err != nil {
			t.Fatal(err)
		}
		var out, trouble bytes.Buffer
		status, err := listen(conn, Streams{Stdout: &out, Stderr: &trouble})
		conn.Close()
		if serr := <-served; serr != nil {
			t.Fatal(serr)
		}
		if out.Len()+trouble.Len() > len(said) {
			t.Errorf("%d bytes are %d of output", len(said), out.Len()+trouble.Len())
		}
		if (err == nil) != (status.Status != "") {
			t.Errorf("it ended with %+v and %v", status, err)
		}
		if err == nil {
			if code, err := status.code(); code < 0 || code > 255 || code == 0 && status.Status != "Success" {
				t.Errorf("%+v is the exit code %d, %v", status, code, err)
			}
		}
	})
}

// say answers a handshake, sends bytes as they are, and goes.
func say(conn net.Conn, said []byte) error {
	defer conn.Close()
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return err
	}
	sum := sha1.Sum([]byte(req.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // as above
	if _, err := fmt.Fprintf(conn,
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]), protocol); err != nil {
		return err
	}
	heard := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, conn); close(heard) }() // pongs
	_, _ = conn.Write(said)                                        // the client may have heard enough
	conn.Close()
	<-heard
	return nil
}
