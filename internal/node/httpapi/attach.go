// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/wherryproject/wherry/internal/runtime/tap"
	"github.com/wherryproject/wherry/internal/streams"
)

// How long streams may be idle, and how long a client may take to open them, as the kubelet has it.
const (
	streamIdle     = 4 * time.Hour
	streamCreation = 30 * time.Second
)

// Attacher is a runtime that keeps what containers print for those who attach (EC-16).
type Attacher interface {
	// KeepsOutput says whether it does for this container; others are attached to through the CRI.
	KeepsOutput(ctx context.Context, containerID string) (bool, error)
	// Attach returns nil when the container's process has ended and all its output was written, ctx.Err() when ctx is
	// done.
	Attach(ctx context.Context, containerID string, o tap.Options) error
}

// serveKept joins a client with a container whose output is kept.
func (s *Server) serveKept(w http.ResponseWriter, r *http.Request, id string, o streamOptions) {
	// The request does not end with its connection once that is taken over.
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	r = r.WithContext(ctx)
	watched := streams.Watch(w, func() { cancel(errLost) })
	options := &remotecommand.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, TTY: o.TTY}
	to := attachTo{s.config.Attach, o}
	if wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		serveWebSocket(watched, r, options, "error attaching to container",
			func(ctx context.Context, in io.Reader, out, errOut io.WriteCloser,
				sizes <-chan remotecommand.TerminalSize) error {
				return to.AttachContainer(ctx, "", "", id, in, out, errOut, o.TTY, sizes)
			})
		return
	}
	remotecommand.ServeAttach(watched, r, to, "", "", id, options, streamIdle, streamCreation,
		remotecommand.SupportedStreamingProtocols)
}

// attachTo gives an Attacher the shape that the streaming library asks for.
type attachTo struct {
	to Attacher
	o  streamOptions // what the client asked for: the library makes up the rest of a WebSocket's
}

// Why a request for streams ends before the process does.
var (
	errLost    = errors.New("the client is gone")
	errStopped = errors.New("the node's agent is stopping; the container keeps running: attach again")
)

// AttachContainer implements remotecommand.Attacher. A client that is gone is no error: nobody is there to read it. One
// that is there when this server stops must not take that for the container's end.
func (a attachTo) AttachContainer(ctx context.Context, _, _, id string, in io.Reader, out, errOut io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize) error {
	o := tap.Options{TTY: tty, Resize: resize}
	if a.o.Stdin {
		o.Stdin = in
	}
	if a.o.Stdout {
		o.Stdout = out
	}
	if a.o.Stderr {
		o.Stderr = errOut
	}
	err := a.to.Attach(ctx, id, o)
	switch {
	case errors.Is(context.Cause(ctx), errLost):
		return nil
	case ctx.Err() != nil:
		return errStopped
	}
	return err
}
