// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/wherryproject/wherry/internal/cri/critest"
)

// echoes are programs on the ports of a pod: each says which port it is and gives back what it gets. None is on port 1.
type echoes struct{ at string }

func newEchoes(t *testing.T) *echoes {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprint(c, "port 80\n")
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return &echoes{l.Addr().String()}
}

func (e *echoes) DialPod(_ context.Context, sandboxID string) (
	func(ctx context.Context, port int32) (net.Conn, error), error) {
	if sandboxID == "" {
		return nil, status.Error(codes.NotFound, "the pod's network is gone")
	}
	return func(ctx context.Context, port int32) (net.Conn, error) {
		if port == 1 {
			return nil, fmt.Errorf("nothing listens on port %d", port)
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", e.at)
	}, nil
}

// gone is a runtime whose pod has no network any more.
type gone struct{}

func (gone) DialPod(context.Context, string) (func(ctx context.Context, port int32) (net.Conn, error), error) {
	return nil, status.Error(codes.NotFound, "the pod's network is gone")
}

// EC-14: a pod without a network is told before anything is switched to another protocol.
func TestForwardToNoNetwork(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Forward = gone{} })
	if code, body := w.do(w.masters, http.MethodPost, "/portForward/default/web"); code != 404 ||
		!strings.Contains(body, "network is gone") {
		t.Errorf("%d %q", code, body)
	}
}

// EC-14: a client that says nothing more still gets all that the program has to say; and one that is gone ends the
// connection to it.
func TestForwardHalfClosed(t *testing.T) {
	dial, err := newEchoes(t).DialPod(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	client, gone := context.WithCancel(t.Context())
	near, far := net.Pipe()
	defer near.Close()
	ended := make(chan error, 1)
	said, saying := io.Pipe()
	go func() {
		ended <- ports{client, dial}.PortForward(t.Context(), "", "", 80, joined{said, far})
		far.Close()
	}()
	go func() {
		_, _ = io.WriteString(saying, "all of it")
		saying.Close()
	}()
	if text, err := io.ReadAll(near); err != nil || string(text) != "port 80\nall of it" {
		t.Errorf("heard %q, %v", text, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}

	near2, far2 := net.Pipe()
	defer near2.Close()
	go func() { ended <- ports{client, dial}.PortForward(t.Context(), "", "", 80, far2) }()
	if _, err := io.ReadFull(near2, make([]byte, len("port 80\n"))); err != nil {
		t.Fatal(err)
	}
	gone()
	if err := <-ended; err != nil {
		t.Errorf("a client that is gone: %v", err)
	}
}

// joined is a stream whose two directions are apart.
type joined struct {
	io.Reader
	io.WriteCloser
}

// scripted are containers that run, of which each greets and echoes.
type scripted struct{}

func (scripted) AttachRunning(ctx context.Context, id string, in io.Reader, out, errOut io.WriteCloser, tty bool,
	resize <-chan remotecommand.TerminalSize) error {
	return critest.Scripts{}.Attach(ctx, id, in, out, errOut, tty, resize)
}
