// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/wherryproject/wherry/internal/runtime/tap"
)

// Attacher is a runtime that keeps what containers print for those who attach (EC-16).
type Attacher interface {
	// KeepsOutput says whether it does for this container; others are attached to through the CRI.
	KeepsOutput(ctx context.Context, containerID string) (bool, error)
	// LogsOutput says whether it writes this container's log: Attach shows the log first then, by the options' Past.
	LogsOutput(containerID string) bool
	// Attach returns nil when the container's process has ended and all its output was written, ctx.Err() when ctx is
	// done.
	Attach(ctx context.Context, containerID string, o tap.Options) error
}

// Streams is a runtime that joins clients with running containers from now on.
type Streams interface {
	// AttachRunning returns when the container's output has ended, or ctx. It closes out and errOut; streams that the
	// client did not ask for are nil.
	AttachRunning(ctx context.Context, containerID string, in io.Reader, out, errOut io.WriteCloser, tty bool,
		resize <-chan remotecommand.TerminalSize) error
}

// serveKept joins a client with a container whose output is kept.
func (s *Server) serveKept(w http.ResponseWriter, r *http.Request, id string, o streamOptions) {
	join(w, r, joint{options: o.forLibrary(), by: byAttach, run: attachTo{s.config.Attach, id, o}.process})
}

// attachTo gives an Attacher the shape of a process.
type attachTo struct {
	to Attacher
	id string
	o  streamOptions // what the client asked for: the library makes up the rest of a WebSocket's
}

// Why a request for streams ends before the process does.
var (
	errLost    = errors.New("the client is gone")
	errStopped = errors.New("the node's agent is stopping; the container keeps running: attach again")
)

// process attaches. A client that is gone is no error: nobody is there to read it. One that is there when this server
// stops must not take that for the container's end.
func (a attachTo) process(ctx context.Context, in io.Reader, out, errOut io.WriteCloser,
	sizes <-chan remotecommand.TerminalSize) error {
	o := tap.Options{TTY: a.o.TTY, Resize: sizes}
	if a.o.Stdin {
		o.Stdin = in
	}
	if a.o.Stdout {
		o.Stdout = out
	}
	if a.o.Stderr {
		o.Stderr = errOut
	}
	return ended(ctx, a.to.Attach(ctx, a.id, o))
}

// ended is why streams ended, for the client.
func ended(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errLost):
		return nil
	case ctx.Err() != nil:
		return errStopped
	}
	return err
}
