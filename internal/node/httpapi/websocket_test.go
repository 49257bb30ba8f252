// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	serverremotecommand "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/wherryproject/wherry/internal/runtime/tap"
	"github.com/wherryproject/wherry/internal/streams"
)

// processServer serves a process to WebSocket clients.
func processServer(t *testing.T, o serverremotecommand.Options, run process) *httptest.Server {
	t.Helper()
	var handlers sync.WaitGroup
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers.Add(1)
		defer handlers.Done()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		serveWebSocket(streams.Watch(w, cancel), r.WithContext(ctx), &o, "error executing command in container", run)
	}))
	t.Cleanup(func() { handlers.Wait(); srv.Close() })
	return srv
}

// dialV5 is a client that sees the frames.
func dialV5(t *testing.T, srv *httptest.Server) *websocket.Conn {
	t.Helper()
	// As client-go has it: a message is one frame.
	d := websocket.Dialer{Subprotocols: []string{streams.V5}, WriteBufferSize: 512 << 10}
	c, _, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

func stream(t *testing.T, srv *httptest.Server, o remotecommand.StreamOptions) error {
	t.Helper()
	e, err := remotecommand.NewWebSocketExecutor(&rest.Config{Host: srv.URL}, "GET", srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return e.StreamWithContext(t.Context(), o)
}

// IX-05: what a command prints before it ends at once reaches a WebSocket client, however many there are.
func TestWebSocketLosesNothing(t *testing.T) {
	const clients, each = 16, 150
	srv := processServer(t, serverremotecommand.Options{Stdout: true, Stderr: true},
		func(_ context.Context, _ io.Reader, out, _ io.WriteCloser, _ <-chan serverremotecommand.TerminalSize) error {
			_, err := io.WriteString(out, "blue")
			return err
		})
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				var out bytes.Buffer
				if err := stream(t, srv, remotecommand.StreamOptions{Stdout: &out, Stderr: io.Discard}); err != nil || out.String() != "blue" {
					t.Errorf("%q, %v", out.String(), err)
				}
			}
		})
	}
	wg.Wait()
}

// IX-01: the exit code reaches the client as from any kubelet, and so do the words of what went wrong.
func TestWebSocketEnds(t *testing.T) {
	var end error
	srv := processServer(t, serverremotecommand.Options{Stdout: true},
		func(context.Context, io.Reader, io.WriteCloser, io.WriteCloser, <-chan serverremotecommand.TerminalSize) error {
			return end
		})
	end = utilexec.CodeExitError{Err: errors.New("command terminated with exit code 7"), Code: 7}
	err := stream(t, srv, remotecommand.StreamOptions{Stdout: io.Discard})
	if exit, ok := errors.AsType[exec.CodeExitError](err); !ok || exit.Code != 7 {
		t.Errorf("exit code 7 came as %v", err)
	}
	c := dialV5(t, srv)
	want := `{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 7",` +
		`"reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`
	if said := saidAtEnd(t, c); said != want {
		t.Errorf("the error channel said %s", said)
	}
	if _, _, err := c.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("then came %v", err)
	}
	end = errors.New("no such luck")
	err = stream(t, srv, remotecommand.StreamOptions{Stdout: io.Discard})
	if err == nil || err.Error() != "Internal error occurred: error executing command in container: no such luck" {
		t.Errorf("an error came as %v", err)
	}
}

// saidAtEnd is what comes on the error channel.
func saidAtEnd(t *testing.T, c *websocket.Conn) string {
	t.Helper()
	for {
		_, p, err := c.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if p[0] == streams.Status && len(p) > 1 {
			return string(p[1:])
		}
	}
}

// A connection that ends before the process does is no success, whoever ends it: not one that the server closes because it cannot
// understand the client, nor one that is cut.
func TestWebSocketCutIsNoSuccess(t *testing.T) {
	for name, cut := range map[string]func(*conns, *websocket.Conn) error{
		"bad signal": func(_ *conns, c *websocket.Conn) error {
			return c.WriteMessage(websocket.BinaryMessage, []byte{255, 9})
		},
		"cut": func(open *conns, _ *websocket.Conn) error { open.close(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			over, ended := make(chan struct{}), make(chan struct{})
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				serveWebSocket(w, r, &serverremotecommand.Options{Stdin: true, Stdout: true}, "x",
					func(context.Context, io.Reader, io.WriteCloser, io.WriteCloser, <-chan serverremotecommand.TerminalSize) error {
						<-over
						return nil
					})
			}))
			open := newConns()
			srv.Listener = open.track(srv.Listener)
			srv.Start()
			defer srv.Close()
			c := dialV5(t, srv)
			if err := cut(open, c); err != nil {
				t.Fatal(err)
			}
			var err error
			for err == nil {
				var p []byte
				if _, p, err = c.ReadMessage(); err == nil && len(p) > 1 {
					t.Errorf("the client reads %q", p)
				}
			}
			if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
				t.Errorf("the client reads %v", err)
			}
			close(over)
			<-ended
		})
	}
}

// A client that does not read holds up the process, and nothing is gathered for it; all of it comes when it reads.
func TestWebSocketSlowClient(t *testing.T) {
	const size = 64 << 20
	var written atomic.Int64
	srv := processServer(t, serverremotecommand.Options{Stdout: true},
		func(_ context.Context, _ io.Reader, out, _ io.WriteCloser, _ <-chan serverremotecommand.TerminalSize) error {
			buf := make([]byte, 64<<10)
			for n := 0; n < size; n += len(buf) {
				if _, err := out.Write(buf); err != nil {
					return err
				}
				written.Store(int64(n + len(buf)))
			}
			return nil
		})
	c := dialV5(t, srv)
	for range 4 { // the first messages are there, and many more would fit into no socket
		if _, _, err := c.ReadMessage(); err != nil {
			t.Fatal(err)
		}
	}
	got := 0
	if written.Load() == size {
		t.Error("all was taken from the process before the client read it")
	}
	for {
		_, p, err := c.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if p[0] == streams.Status {
			break
		}
		got += len(p) - 1
	}
	if got < size-4*64<<10 {
		t.Errorf("%d bytes came", got)
	}
}

// Input that the process does not read holds up neither the window's size nor the news that the client is gone, and no more of it is
// held than may be; what it does read is whole, and has an end.
func TestWebSocketInput(t *testing.T) {
	const size = 5 << 20
	read, gone := make(chan string, 1), make(chan struct{})
	srv := processServer(t, serverremotecommand.Options{Stdin: true, Stdout: true, TTY: true},
		func(ctx context.Context, in io.Reader, _, _ io.WriteCloser, sizes <-chan serverremotecommand.TerminalSize) error {
			size := <-sizes
			read <- fmt.Sprintf("%dx%d", size.Width, size.Height)
			if size.Width == 1 {
				<-ctx.Done()
				close(gone)
				return nil
			}
			all, err := io.ReadAll(in)
			read <- fmt.Sprint(len(all))
			return err
		})
	c := dialV5(t, srv)
	say := func(channel byte, p []byte) {
		t.Helper()
		if err := c.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, p...)); err != nil {
			t.Fatal(err)
		}
	}
	say(streams.Stdin, make([]byte, 300<<10))
	for range 5 {
		say(streams.Resize, []byte(`{"Width":1,"Height":2}`))
	}
	if got := <-read; got != "1x2" {
		t.Errorf("the window is %s", got)
	}
	_ = c.Close()
	<-gone

	c = dialV5(t, srv)
	say(streams.Resize, []byte(`{"Width":3,"Height":4}`))
	<-read
	for range size / (64 << 10) {
		say(streams.Stdin, make([]byte, 64<<10))
	}
	say(255, []byte{streams.Stdin})
	if got := <-read; got != fmt.Sprint(size) {
		t.Errorf("%s bytes were read", got)
	}
	if said := saidAtEnd(t, c); said != `{"metadata":{},"status":"Success"}` {
		t.Errorf("the end is %s", said)
	}
}

// EC-16: input comes whole from a client whose messages are several frames, as those of a library with small buffers are.
func TestWebSocketInputInFrames(t *testing.T) {
	text := bytes.Repeat([]byte("\x00\x01\x02\x03\x04\xff\x00"), 30_000)
	srv := processServer(t, serverremotecommand.Options{Stdin: true, Stdout: true},
		func(_ context.Context, in io.Reader, _, _ io.WriteCloser, _ <-chan serverremotecommand.TerminalSize) error {
			if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, text) {
				return fmt.Errorf("the process read %d bytes of %d: %v", len(got), len(text), err)
			}
			return nil
		})
	d := websocket.Dialer{Subprotocols: []string{"v5.channel.k8s.io"}, WriteBufferSize: 1000}
	c, _, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, message := range [][]byte{append([]byte{0}, text...), {255, 0}} {
		if err := c.WriteMessage(websocket.BinaryMessage, message); err != nil {
			t.Fatal(err)
		}
	}
	if said := saidAtEnd(t, c); said != `{"metadata":{},"status":"Success"}` {
		t.Errorf("the end is %s", said)
	}
}

// EC-15: a server that stops does not tell those who are attached that the container has ended.
func TestAttachKeptServerStops(t *testing.T) {
	a := attachTo{to: &keeper{attach: func(ctx context.Context, _ tap.Options) error { <-ctx.Done(); return ctx.Err() }}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.process(ctx, nil, nil, nil, nil); !errors.Is(err, errStopped) {
		t.Errorf("the client reads %v", err)
	}
	lost, lose := context.WithCancelCause(t.Context())
	lose(errLost)
	if err := a.process(lost, nil, nil, nil, nil); err != nil {
		t.Errorf("nobody reads %v", err)
	}
}
