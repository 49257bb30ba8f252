// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	client "k8s.io/client-go/tools/remotecommand"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// attachRunning joins a client with a container that runs, past the CRI's streams; of one that has ended it shows the
// log.
func (s *Server) attachRunning(w http.ResponseWriter, r *http.Request, id, path string, o streamOptions) {
	st, err := s.config.CRI.Runtime.ContainerStatus(r.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	switch {
	case err == nil && st.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING:
		s.serveReplayed(w, r, id, path, s.running(id, o.TTY), o)
	case s.leftLog(r, id, path):
		s.serveReplayed(w, r, id, path, nil, o)
	case err != nil:
		s.refuse(w, r, inContainer(r, err))
	case st.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_EXITED:
		s.refuse(w, r, inContainer(r, fail(http.StatusInternalServerError, "it has ended (exit code %d)",
			st.GetStatus().GetExitCode())))
	default:
		s.refuse(w, r, inContainer(r, fail(http.StatusInternalServerError, "it has not started")))
	}
}

// running attaches by the runtime itself.
func (s *Server) running(id string, tty bool) process {
	return func(ctx context.Context, in io.Reader, out, errOut io.WriteCloser,
		sizes <-chan remotecommand.TerminalSize) error {
		return s.config.Streams.AttachRunning(ctx, id, in, out, errOut, tty, sizes)
	}
}

// streamed attaches by the runtime's server of streams, at the place that the CRI has given.
func streamed(location *url.URL, tty bool) process {
	return func(ctx context.Context, in io.Reader, out, errOut io.WriteCloser,
		sizes <-chan remotecommand.TerminalSize) error {
		o := client.StreamOptions{Tty: tty, Stdin: in}
		if out != nil {
			o.Stdout = out
		}
		if errOut != nil {
			o.Stderr = errOut
		}
		if tty {
			o.TerminalSizeQueue = sizeQueue{ctx, sizes}
		}
		executor, err := client.NewSPDYExecutor(&rest.Config{}, http.MethodPost, location)
		if err != nil {
			return fmt.Errorf("the container runtime's stream: %w", err)
		}
		return executor.StreamWithContext(ctx, o)
	}
}

// sizeQueue implements client.TerminalSizeQueue.
type sizeQueue struct {
	ctx  context.Context
	from <-chan remotecommand.TerminalSize
}

// Next is part of client.TerminalSizeQueue.
func (q sizeQueue) Next() *client.TerminalSize {
	select {
	case <-q.ctx.Done():
		return nil
	case size, ok := <-q.from:
		if !ok {
			return nil
		}
		return &client.TerminalSize{Width: size.Width, Height: size.Height}
	}
}
