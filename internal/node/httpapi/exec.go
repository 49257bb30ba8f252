// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	utilexec "k8s.io/utils/exec"
)

// Execer is a runtime that runs commands in containers without the CRI's streams, and lets go of a client that is gone
// (RS-01).
type Execer interface {
	// Exec returns the command's exit code when it has ended and its output is written, or ctx's error, which does not
	// end it.
	Exec(ctx context.Context, containerID string, c Command) (code int, err error)
}

// Command is what a client wants to have run, with its streams: those that it did not ask for are nil.
type Command struct {
	Words          []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	TTY            bool
	Resize         <-chan remotecommand.TerminalSize
	Ended          func() // to be called once, when the command has ended
}

// serveExec joins a client with a command that the runtime runs. ended is called when that has ended, be the client
// there or not.
func (s *Server) serveExec(w http.ResponseWriter, r *http.Request, id string, words []string, o streamOptions,
	ended func()) {
	run := &execIn{to: s.config.Exec, id: id, words: words, o: o, ended: ended}
	defer run.neverBegun()
	join(w, r, joint{options: o.forLibrary(), by: byExec, run: run.process})
}

// execIn gives an Execer the shape of a process.
type execIn struct {
	to    Execer
	id    string
	words []string
	o     streamOptions // what the client asked for: the library makes up the rest of a WebSocket's
	ended func()
	begun bool
}

func (e *execIn) neverBegun() {
	if !e.begun {
		e.ended()
	}
}

// process runs the command.
func (e *execIn) process(ctx context.Context, in io.Reader, out, errOut io.WriteCloser,
	sizes <-chan remotecommand.TerminalSize) error {
	c := Command{Words: e.words, TTY: e.o.TTY, Resize: sizes, Ended: e.ended}
	if e.o.Stdin {
		c.Stdin = in
	}
	if e.o.Stdout {
		c.Stdout = out
	}
	if e.o.Stderr && !e.o.TTY {
		c.Stderr = errOut
	}
	e.begun = true
	code, err := e.to.Exec(ctx, e.id, c)
	switch {
	case err == nil && code != 0:
		return utilexec.CodeExitError{Err: fmt.Errorf("error executing command %v, exit code %d", e.words, code),
			Code: code}
	case errors.Is(context.Cause(ctx), errLost):
		return nil // nobody is there to read it
	case ctx.Err() != nil:
		return errors.New("the node's agent is stopping; the command keeps running, without this client")
	}
	return err
}

// mayExec checks what the CRI checks before there are streams.
func (s *Server) mayExec(r *http.Request, id string) error {
	if !wsstream.IsWebSocketRequest(r) && !httpstream.IsUpgradeRequest(r) {
		return fail(http.StatusBadRequest, "you must upgrade the connection to SPDY or WebSocket")
	}
	st, err := s.config.CRI.Runtime.ContainerStatus(r.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		return inContainer(r, err)
	}
	if state := st.GetStatus().GetState(); state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return inContainer(r, fmt.Errorf("container is in %s state", state))
	}
	return nil
}
