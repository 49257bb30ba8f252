// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	utilexec "k8s.io/utils/exec"

	"github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/node/imageexec"
)

// ImageExec runs commands of other images in pods; *imageexec.Execs.
type ImageExec interface {
	Prepare(ctx context.Context, pod *corev1.Pod, r imageexec.Request) (*imageexec.Session, error)
}

// imageExec runs the query's command in a fresh container of the query's image, inside a pod (IX-01). All that can go
// wrong before there are streams is answered as plain HTTP.
func (s *Server) imageExec(w http.ResponseWriter, r *http.Request) {
	if s.config.ImageExec == nil {
		why := s.config.NoImageExec
		if why == "" {
			why = "image exec is not implemented for this node's container runtime: it does not report where containers' file systems are, " +
				"as the embedded runtime does (run wherry without --container-runtime-endpoint)"
		}
		s.refuse(w, r, fail(http.StatusNotImplemented, "%s", why))
		return
	}
	req, err := imageexec.Parse(r.URL.Query())
	if err == nil && !wsstream.IsWebSocketRequest(r) && !httpstream.IsUpgradeRequest(r) {
		err = errors.New("this endpoint is for streams: the request must upgrade its connection to SPDY or WebSocket")
	}
	if err != nil {
		s.refuse(w, r, fail(http.StatusBadRequest, "%w", err))
		return
	}
	pod, err := s.podOf(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	session, err := s.config.ImageExec.Prepare(r.Context(), pod, req)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	defer session.Close()
	serveSession(w, r, session, req)
}

// session is an image exec that was prepared; *imageexec.Session.
type session interface {
	Notes() []string
	Run(ctx context.Context, to imageexec.Streams) (code int, err error)
	Close()
}

// serveSession joins a client with an image exec, which it closes when the client is gone.
func serveSession(w http.ResponseWriter, r *http.Request, session session, req imageexec.Request) {
	for _, n := range session.Notes() {
		w.Header().Add(wire.HeaderNote, n)
	}
	join(w, r, joint{
		options: remotecommand.Options{Stdin: req.Stdin, Stdout: req.Stdout, Stderr: req.Stderr, TTY: req.TTY},
		by:      byExec, run: sessionIn{session, req.TTY}.process, gone: session.Close,
	})
}

// sessionIn gives an image exec the shape of a process.
type sessionIn struct {
	session session
	tty     bool
}

// process runs the command.
func (s sessionIn) process(ctx context.Context, in io.Reader, out, errs io.WriteCloser,
	sizes <-chan remotecommand.TerminalSize) error {
	to := imageexec.Streams{TTY: s.tty, Resize: sizes}
	// An interface that holds nothing is not nil to who looks.
	if in != nil {
		to.Stdin = in
	}
	if out != nil {
		to.Stdout = out
	}
	if errs != nil {
		to.Stderr = errs
	}
	code, err := s.session.Run(ctx, to)
	if err == nil && code != 0 {
		err = utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
	}
	return err
}
