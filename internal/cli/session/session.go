// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Exit codes of a session itself, as docker run has them.
const (
	ExitRefused     = 1 // by the server or the node, before anything ran
	ExitFailed      = 125
	ExitInterrupted = 130
)

// ErrDetached says that the user left with the detach keys, Ctrl-P Ctrl-Q; the command goes on.
var ErrDetached = errors.New("detached")

// ErrNoWebSocket says that what answered does not speak this protocol, and nothing was done: an older server, or a
// proxy.
var ErrNoWebSocket = errors.New("the server does not speak " + protocol)

// Request is one streaming request.
type Request struct {
	Dial Dial
	URL  *url.URL
	// Otherwise carries the streams for a server that does not speak WebSocket; it may be nil.
	Otherwise func(ctx context.Context, s Streams) (code int, err error)
	// Stdin may be nil. With TTY it should be the user's terminal, which is put into raw mode.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	TTY            bool
	// DetachKeys lets the user leave with Ctrl-P Ctrl-Q.
	DetachKeys bool
	// Meanwhile is called when the server has not answered for a while, and waited for; ctx ends with the answer. It
	// may be nil.
	Meanwhile func(ctx context.Context)
}

// patience is after how long a user wants to know what is being waited for.
const patience = time.Second

// Streams are what is carried. Stdin may be nil, and so is Stderr on a terminal; Sizes are the terminal's.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	TTY            bool
	Sizes          <-chan Size
}

// Size is that of a terminal, in characters.
type Size struct{ Width, Height uint16 }

// Run makes the request and carries the streams until the command ends, and returns its exit code where the request
// returns it (exec does, attach does not). A refusal is a *Refusal.
func (r Request) Run(ctx context.Context) (code int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	streams := Streams{Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr, TTY: r.TTY}
	if r.TTY {
		streams.Stderr = nil
		restore, sizes, err := takeTerminal(ctx, r.Stdin, r.Stdout)
		if err != nil {
			return ExitFailed, err
		}
		defer restore()
		streams.Sizes = sizes
		if r.DetachKeys && r.Stdin != nil {
			streams.Stdin = &detacher{in: r.Stdin, leave: func() { cancel(ErrDetached) }}
		}
	}
	code, err = r.carry(ctx, streams)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrDetached):
		return 0, ErrDetached
	case cause != nil && err != nil:
		return ExitInterrupted, cause
	}
	return code, err
}

// carry connects and carries the streams.
func (r Request) carry(ctx context.Context, s Streams) (int, error) {
	answered := r.meanwhile(ctx)
	conn, err := r.Dial(ctx, r.URL)
	answered()
	if errors.Is(err, ErrNoWebSocket) && r.Otherwise != nil {
		return r.Otherwise(ctx, s)
	}
	if err != nil {
		return CodeOf(err)
	}
	status, err := carry(ctx, conn, s)
	if err != nil {
		return ExitFailed, err
	}
	return status.code()
}

// meanwhile begins to wait for the server's answer; answered ends that.
func (r Request) meanwhile(ctx context.Context) (answered func()) {
	if r.Meanwhile == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(patience):
			r.Meanwhile(ctx)
		}
	})
	return func() {
		cancel()
		wait.Wait()
	}
}

// takeTerminal puts the user's terminal into raw mode and follows its size. Without one there is nothing to do.
func takeTerminal(ctx context.Context, in io.Reader, out io.Writer) (restore func(), sizes <-chan Size, err error) {
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
