// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/wherryproject/wherry/internal/api/debugrun"
	"github.com/wherryproject/wherry/internal/cri"
)

// Exit codes of a session itself, as docker run has them.
const (
	ExitRefused     = 1 // by the server or the node, before anything ran
	ExitFailed      = 125
	ExitInterrupted = 130
)

// ErrDetached says that the user left with the detach keys, Ctrl-P Ctrl-Q; the command goes on.
var ErrDetached = errors.New("detached")

// Request is one streaming request.
type Request struct {
	Config *rest.Config
	URL    *url.URL
	// Stdin may be nil. With TTY it should be the user's terminal, which is put into raw mode.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	TTY            bool
	// DetachKeys lets the user leave with Ctrl-P Ctrl-Q.
	DetachKeys bool
}

// Run makes the request and carries the streams until the command ends, and returns its exit code where the request tells it
// (exec does, attach does not). A refusal is an *apierrors.StatusError.
func (r Request) Run(ctx context.Context) (code int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	options := remotecommand.StreamOptions{Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr, Tty: r.TTY}
	if r.TTY {
		options.Stderr = nil
		restore, sizes, err := takeTerminal(ctx, r.Stdin, r.Stdout)
		if err != nil {
			return ExitFailed, err
		}
		defer restore()
		options.TerminalSizeQueue = sizes
		if r.DetachKeys && r.Stdin != nil {
			options.Stdin = &detacher{in: r.Stdin, leave: func() { cancel(ErrDetached) }}
		}
	}
	executor, err := r.executor()
	if err != nil {
		return ExitFailed, err
	}
	err = executor.StreamWithContext(ctx, options)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrDetached):
		return 0, ErrDetached
	case cause != nil && err != nil:
		return ExitInterrupted, cause
	}
	return codeOf(err)
}

// executor speaks WebSocket, and SPDY to servers that do not; but a server that understood and refused is not asked again.
func (r Request) executor() (remotecommand.Executor, error) {
	socket, err := remotecommand.NewWebSocketExecutor(r.Config, http.MethodGet, r.URL.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(r.Config, http.MethodPost, r.URL)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		if refusalIn(err) != nil {
			return false
		}
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// codeOf takes the exit code out of how a stream ended.
func codeOf(err error) (int, error) {
	if err == nil {
		return 0, nil
	}
	if ended, ok := errors.AsType[exec.CodeExitError](err); ok {
		return ended.Code, nil
	}
	if refusal := refusalIn(err); refusal != nil {
		return refusedCode(refusal), refusal
	}
	err = plain(err)
	if said, ok := strings.CutPrefix(err.Error(), refusedByNode); ok {
		return ExitRefused, errors.New(said)
	}
	if about(err.Error()) {
		if code := cri.CommandCode(err.Error()); code != 0 {
			return code, err
		}
	}
	return ExitFailed, err
}

// refusedByNode begins what a client hears of a node's refusal when its own connection with the API server is up already: it is told
// as one that came before.
const refusedByNode = "unable to upgrade connection: "

// plain takes the API's word "Internal error occurred" away, which a runtime's error gets at each of the places it comes through.
func plain(err error) error {
	text, cut := err.Error(), false
	for {
		rest, ok := strings.CutPrefix(text, "Internal error occurred: ")
		if !ok {
			break
		}
		text, cut = rest, true
	}
	if !cut {
		return err
	}
	return errors.New(text)
}

// about tells whether an error is about starting the command, in the runtime's words.
func about(text string) bool {
	return strings.Contains(text, "unable to start container process") || strings.Contains(text, "executable file not found in $PATH")
}

// refusalIn is the server's refusal in an error of a stream, or nil.
func refusalIn(err error) *apierrors.StatusError {
	if refusal, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return refusal
	}
	if upgrade, ok := errors.AsType[*httpstream.UpgradeFailureError](err); ok && upgrade.Cause != nil {
		return refusalIn(upgrade.Cause)
	}
	return nil
}

// refusedCode is the exit code that a refusal asks for: that of a command that could not be run, or 1.
func refusedCode(refusal *apierrors.StatusError) int {
	if d := refusal.ErrStatus.Details; d != nil {
		for _, cause := range d.Causes {
			if cause.Type != debugrun.CauseExitCode {
				continue
			}
			if code, err := strconv.Atoi(cause.Message); err == nil && code > 0 && code < 256 {
				return code
			}
		}
	}
	return 1
}

// takeTerminal puts the user's terminal into raw mode and follows its size. Without one there is nothing to do.
func takeTerminal(ctx context.Context, in io.Reader, out io.Writer) (restore func(), sizes remotecommand.TerminalSizeQueue, err error) {
	restore = func() {}
	if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		was, err := term.MakeRaw(int(file.Fd()))
		if err != nil {
			return nil, nil, fmt.Errorf("the terminal cannot be put into raw mode: %w", err)
		}
		restore = func() { _ = term.Restore(int(file.Fd()), was) } // nobody could do anything about it
	}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		sizes = watchSize(ctx, int(file.Fd()))
	}
	return restore, sizes, nil
}
