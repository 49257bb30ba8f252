// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/wherryproject/wherry/internal/streams"
)

// How long streams may be idle, and how long a client may take to open them, as the kubelet has it.
const (
	streamIdle     = 4 * time.Hour
	streamCreation = 30 * time.Second
)

// process is what a client's streams are joined with. Streams that the client did not ask for are nil, but for those of
// the older WebSocket protocols. It returns when the process has ended and all its output was written, with
// utilexec.ExitError for an exit code other than 0.
type process func(ctx context.Context, in io.Reader, out, errOut io.WriteCloser,
	sizes <-chan remotecommand.TerminalSize) error

// ExecInContainer implements remotecommand.Executor.
func (p process) ExecInContainer(ctx context.Context, _, _, _ string, _ []string, in io.Reader, out,
	errOut io.WriteCloser, _ bool, sizes <-chan remotecommand.TerminalSize, _ time.Duration) error {
	return p(ctx, in, out, errOut, sizes)
}

// AttachContainer implements remotecommand.Attacher.
func (p process) AttachContainer(ctx context.Context, _, _, _ string, in io.Reader, out, errOut io.WriteCloser,
	_ bool, sizes <-chan remotecommand.TerminalSize) error {
	return p(ctx, in, out, errOut, sizes)
}

// How a client is joined with a process: the words are used in the error when that fails.
const (
	byExec   = "error executing command in container"
	byAttach = "error attaching to container"
)

// joint is what a client is joined with, and how.
type joint struct {
	options remotecommand.Options
	by      string // byExec or byAttach
	run     process
	gone    func() // nil, or called when the client is gone, be its streams complete or not
}

// join joins a client with a process, by the protocol that it speaks. The process's context ends, with errLost as its
// cause, when the client's connection does, of which its request knows nothing any more once that is taken over.
func join(w http.ResponseWriter, r *http.Request, j joint) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	if j.gone != nil {
		// The streams' server does not look for its client until it has all streams, and then only if something is to
		// be written.
		defer context.AfterFunc(ctx, j.gone)()
	}
	r = r.WithContext(ctx)
	watched := streams.Watch(w, func() { cancel(errLost) })
	switch {
	case wsstream.IsWebSocketRequestWithStreamCloseProtocol(r):
		serveWebSocket(watched, r, &j.options, j.by, j.run)
	case j.by == byAttach:
		remotecommand.ServeAttach(watched, r, j.run, "", "", "", &j.options, streamIdle, streamCreation,
			remotecommand.SupportedStreamingProtocols)
	default:
		remotecommand.ServeExec(watched, r, j.run, "", "", "", nil, &j.options, streamIdle, streamCreation,
			remotecommand.SupportedStreamingProtocols)
	}
}

// forLibrary are the options as the streaming library takes them.
func (o streamOptions) forLibrary() remotecommand.Options {
	return remotecommand.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, TTY: o.TTY}
}
