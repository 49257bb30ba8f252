// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	serverremotecommand "k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/wherryproject/wherry/internal/streams"
)

// EC-16: output of every size comes as it was written, also while the client asks whether the node is there, and when it
// asks after all was said.
func TestWebSocketOutput(t *testing.T) {
	sizes := []int{0, 1, 124, 125, 126, 4096, 1<<16 - 2, 1<<16 - 1, 1 << 16, 300_000}
	for i := range 200 {
		sizes = append(sizes, i*331)
	}
	text := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i%26)}, sizes[i]) }
	srv := processServer(t, serverremotecommand.Options{Stdout: true, Stderr: true},
		func(_ context.Context, _ io.Reader, out, errOut io.WriteCloser, _ <-chan serverremotecommand.TerminalSize) error {
			for i := range sizes {
				to := out
				if i%3 == 0 {
					to = errOut
				}
				if n, err := to.Write(text(i)); err != nil || n != sizes[i] {
					t.Errorf("%d of %d bytes, %v", n, sizes[i], err)
				}
			}
			return nil
		})
	c := dialV5(t, srv)
	pongs := 0
	c.SetPongHandler(func(string) error { pongs++; return nil })
	next := func() (channel byte, message []byte) {
		t.Helper()
		kind, message, err := c.ReadMessage()
		if err != nil || kind != websocket.BinaryMessage || len(message) == 0 {
			t.Fatalf("kind %d, %d bytes, %v", kind, len(message), err)
		}
		return message[0], message[1:]
	}
	if channel, message := next(); channel != streams.Stdout || len(message) != 0 {
		t.Fatalf("the first message is %d %q", channel, message)
	}
	for i := range sizes {
		if err := c.WriteControl(websocket.PingMessage, []byte("there?"), time.Now().Add(10*time.Second)); err != nil {
			t.Fatal(err)
		}
		want := streams.Stdout
		if i%3 == 0 {
			want = streams.Stderr
		}
		channel, message := next()
		for channel == want && len(message) < sizes[i] { // what is long comes in several
			var more []byte
			channel, more = next()
			message = append(message, more...)
		}
		if channel != want || !bytes.Equal(message, text(i)) {
			t.Fatalf("message %d of %d bytes came as %d bytes on channel %d", i, sizes[i], len(message), channel)
		}
	}
	if channel, message := next(); channel != streams.Status || !bytes.Contains(message, []byte("Success")) {
		t.Errorf("at the end %d %q", channel, message)
	}
	if pongs == 0 {
		t.Error("no ping was answered")
	}
}
