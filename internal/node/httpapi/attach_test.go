// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/wherryproject/wherry/internal/runtime/tap"
)

// keeper is an Attacher for the container debug; the streams of its clients are the test's.
type keeper struct {
	id     string
	attach func(context.Context, tap.Options) error
}

// LogsOutput implements Attacher.
func (k *keeper) LogsOutput(string) bool { return false }

// KeepsOutput implements Attacher.
func (k *keeper) KeepsOutput(_ context.Context, id string) (bool, error) { return id == k.id, nil }

func (k *keeper) Attach(ctx context.Context, _ string, o tap.Options) error { return k.attach(ctx, o) }

func keeperWorld(t *testing.T, attach func(context.Context, tap.Options) error) *world {
	t.Helper()
	k := &keeper{attach: attach}
	w := newWorld(t, func(c *Config) { c.Attach = k })
	k.id = w.host.containers["debug"]
	return w
}

// EC-14, EC-15: streams and the window's size reach a container whose output is kept, by both protocols, and the end of the input
// does; streams that were not asked for are not there.
func TestAttachKept(t *testing.T) {
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			w := keeperWorld(t, func(_ context.Context, o tap.Options) error {
				if o.TTY {
					size := <-o.Resize
					_, err := fmt.Fprintf(o.Stdout, "%dx%d", size.Width, size.Height)
					return errors.Join(err, notThere(o.Stdin, o.Stderr))
				}
				in, err := io.ReadAll(o.Stdin)
				_, outErr := fmt.Fprintf(o.Stdout, "out %s", in)
				_, errErr := fmt.Fprintf(o.Stderr, "err %s", in)
				return errors.Join(err, outErr, errErr)
			})
			var out, errOut bytes.Buffer
			err := w.executor(how, "/attach/default/web/debug?input=1&output=1&error=1").StreamWithContext(t.Context(),
				remotecommand.StreamOptions{Stdin: strings.NewReader("input"), Stdout: &out, Stderr: &errOut})
			if err != nil || out.String() != "out input" || errOut.String() != "err input" {
				t.Errorf("%q %q %v", out.String(), errOut.String(), err)
			}
			queue := make(sizes, 1)
			queue <- remotecommand.TerminalSize{Width: 120, Height: 40}
			defer close(queue)
			out.Reset()
			err = w.executor(how, "/attach/default/web/debug?output=1&tty=1").StreamWithContext(t.Context(),
				remotecommand.StreamOptions{Stdout: &out, Tty: true, TerminalSizeQueue: queue})
			if err != nil || out.String() != "120x40" {
				t.Errorf("with a terminal: %q %v", out.String(), err)
			}
		})
	}
}

func notThere(in io.Reader, errOut io.Writer) error {
	if in != nil || errOut != nil {
		return errors.New("streams that nobody asked for")
	}
	return nil
}

// EC-15: a client that is gone is noticed, though nothing comes and nobody writes; and an error reaches one that is there.
func TestAttachKeptEnds(t *testing.T) {
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			attached, gone := make(chan struct{}), make(chan struct{})
			w := keeperWorld(t, func(ctx context.Context, _ tap.Options) error {
				close(attached)
				<-ctx.Done()
				close(gone)
				return ctx.Err()
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- w.executor(how, "/attach/default/web/debug?output=1").StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard})
			}()
			<-attached
			cancel()
			<-gone
			<-done

			w = keeperWorld(t, func(context.Context, tap.Options) error { return errors.New("no such luck") })
			err := w.executor(how, "/attach/default/web/debug?output=1").StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
			if err == nil || !strings.Contains(err.Error(), "no such luck") {
				t.Errorf("the client reads %v", err)
			}
		})
	}
}

// DC-03: who asks for the streams of one run of a debug container waits until that run has started, by both protocols, and has them then;
// only that run of that very pod, and no longer than the client is there.
func TestAttachStarted(t *testing.T) {
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			w := keeperWorld(t, func(_ context.Context, o tap.Options) error {
				_, err := io.WriteString(o.Stdout, "hello")
				return err
			})
			asked, start, left := make(chan string, 1), make(chan struct{}), make(chan struct{})
			w.host.started = func(ctx context.Context, name string, run uint32) (string, error) {
				asked <- fmt.Sprint(name, run)
				if run == 9 {
					<-ctx.Done()
					close(left)
					return "", ctx.Err()
				}
				<-start
				return w.host.containers[name], nil
			}
			done := make(chan string, 1)
			go func() {
				var out bytes.Buffer
				err := w.executor(how, "/attach/default/web/uid-1/debug/3?output=1").StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out})
				done <- fmt.Sprint(out.String(), err)
			}()
			if got := <-asked; got != "debug3" {
				t.Errorf("waits for %s", got)
			}
			select {
			case got := <-done:
				t.Errorf("%s before the start", got)
			default:
			}
			close(start)
			if got := <-done; got != "hello<nil>" {
				t.Errorf("the client reads %s", got)
			}

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+w.addr+"/attach/default/web/uid-1/debug/9?output=1", nil)
			if err != nil {
				t.Fatal(err)
			}
			transport, err := rest.TransportFor(w.masters)
			if err != nil {
				t.Fatal(err)
			}
			go func() { <-asked; cancel() }()
			if _, err := transport.RoundTrip(req); err == nil {
				t.Error("there was an answer")
			}
			<-left
		})
	}
}

func TestAttachStartedRefused(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]struct {
		status int
		words  string
	}{
		"/attach/default/web/uid-1/debug/3?output=1":  {409, "it was replaced"},
		"/attach/default/web/uid-2/debug/3?output=1":  {404, `pod "web" does not exist`},
		"/attach/default/web/uid-1/debug/x?output=1":  {400, `"x" is not a run number`},
		"/attach/default/web/uid-1/debug/-1?output=1": {400, "is not a run number"},
		"/attach/default/web/uid-1/debug/3":           {400, "at least 1 of"},
	} {
		if code, body := w.do(w.masters, http.MethodPost, path); code != want.status || !strings.Contains(body, want.words) {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	if code, _ := w.do(w.client("nobody", "nothing"), http.MethodPost, "/attach/default/web/uid-1/debug/3?output=1"); code != 403 {
		t.Errorf("somebody without rights: %d", code)
	}
}

// EC-15, PL-22: a client of the old WebSocket protocols that is gone is noticed too, and is no end of the node's agent.
func TestAttachKeptByOldWebSocket(t *testing.T) {
	for _, protocol := range []string{"", "channel.k8s.io", "base64.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"} {
		t.Run(protocol, func(t *testing.T) {
			attached, gone := make(chan struct{}), make(chan error, 1)
			w := keeperWorld(t, func(ctx context.Context, _ tap.Options) error {
				close(attached)
				<-ctx.Done()
				gone <- context.Cause(ctx)
				return ctx.Err()
			})
			tlsConfig, err := rest.TLSConfigFor(w.masters)
			if err != nil {
				t.Fatal(err)
			}
			d := websocket.Dialer{TLSClientConfig: tlsConfig}
			if protocol != "" {
				d.Subprotocols = []string{protocol}
			}
			c, resp, err := d.DialContext(t.Context(), "wss://"+w.addr+"/attach/default/web/debug?output=1", nil)
			if err != nil {
				t.Fatalf("%v: %v", err, resp)
			}
			<-attached
			_ = c.Close()
			select {
			case err := <-gone:
				if !errors.Is(err, errLost) {
					t.Errorf("it ended because of %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("nobody noticed that the client is gone")
			}
		})
	}
}
