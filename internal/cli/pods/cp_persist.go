// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/session"
)

const (
	// cutPatience is how long a copy that was cut waits for a server to go on with.
	cutPatience = time.Minute
	// cutPause is how long it waits first; each time twice as long, to cutPauses.
	cutPause, cutPauses = 250 * time.Millisecond, 5 * time.Second
)

// course is a copy in progress, over one connection after the other.
type course struct {
	reached func() string // changes whenever the copy has come further; "" as long as there is nothing to go on with
	amount  func() string // how much has come, in words
	next    string        // what becomes of it when the copy is given up, in words
}

// gaveUp is the end of a copy that was cut, and could not be gone on with in time.
type gaveUp struct{ error }

// Unwrap is for package errors.
func (g gaveUp) Unwrap() error { return g.error }

// persist copies, and goes on after a cut until the copy is whole or the server stays away.
func (c course) persist(ctx context.Context, relayed io.Writer, once func(after string) error) error {
	after, had := "", ""
	var cut error // the trouble of which the others may only be what follows
	pause, until := cutPause, time.Time{}
	for {
		err := once(after)
		now := c.reached()
		switch {
		case err == nil:
			return nil
		case cut == nil && !session.Lost(err), ctx.Err() != nil:
			return err
		case cut != nil && !passes(err):
			return worded(err, fmt.Sprintf("the copy was cut after %s, and cannot go on", had))
		case !passes(err):
			return err
		case cut == nil && now == "":
			return worded(err, "the copy was cut before anything had arrived")
		case cut == nil || now != after: // it has come further
			had = c.amount()
			fmt.Fprintf(relayed,
				"the connection was lost after %s: the copy continues from where it was, if the server is back within %s\n", had, cutPatience)
			after, cut, pause, until = now, err, cutPause, time.Now().Add(cutPatience)
		case time.Now().After(until):
			return gaveUp{worded(err, fmt.Sprintf("the copy was cut after %s, and could not reconnect within %s", had,
				cutPatience), c.next)}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, cutPauses)
	}
}

// worded is an error in words of a copy's, with the exit code of what is below. That is not to be found in it: its own
// words would be taken for all that there is to say.
func worded(below error, words string, next ...string) error {
	code := cmdline.ExitFailure
	exit, is := errors.AsType[*cmdline.Exit](below)
	if is {
		code = exit.Code
	}
	if !is || exit.Err != nil { // else it was told already
		words += ": " + below.Error()
	}
	return cmdline.ExitWith(code, errors.New(strings.Join(append([]string{words}, next...), "\n")))
}

// notYet is the refusal of a node, in words alone, of a pod which the API server has: a server that was started anew
// answers before its agent has looked at all pods, and then the node does not know the pod.
type notYet struct{ error }

// Unwrap is for package errors.
func (n notYet) Unwrap() error { return n.error }

// passes reports whether what stands in the way of going on may be gone in a moment: the line, or who serves. What the
// server or the container has decided does not pass.
func passes(err error) bool {
	if _, here := errors.AsType[final](err); here {
		return false
	}
	if _, soon := errors.AsType[notYet](err); soon {
		return true
	}
	if refusal, is := errors.AsType[*apierrors.StatusError](err); is {
		code := refusal.ErrStatus.Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	}
	_, line := errors.AsType[net.Error](err)
	return line || session.Lost(err) || !session.Reached(err) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}
