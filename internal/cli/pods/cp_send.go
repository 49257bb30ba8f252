// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/copyfiles"
)

// errKeepsNothing says that the other side cannot go on with a copy, and has done nothing: it is of an older version.
var errKeepsNothing = errors.New("the server does not keep what has come of a copy")

// inward is a copy into a container that goes on after a cut.
type inward struct {
	what   sending
	o      other
	meter  *meter
	sender *copyfiles.Sender
	errs   io.Writer
	given  tokenFile

	life string    // the run of the container that has what was sent
	goes begunCopy // where it goes to; its token is one that only who made it can go on with
}

// send copies into a container, and goes on after a cut. (DA-09)
func (f *cpFlags) send(ctx context.Context, t cmdline.Terminal, o other, relayed io.Writer, m *meter,
	what sending) error {
	c := &inward{what: what, o: o, meter: m, sender: copyfiles.NewSender(what.local), errs: relayed,
		given: f.givenUp.of(o.id, o.container, what.to, what.local, what.base)}
	if c.goes = c.given.recall(time.Now()); c.goes.token != "" { // parts of it may be there
		c.sender.Again()
	} else {
		c.goes.token = rand.Text()
	}
	c.sender.There = func(n int64) { m.bytes.Add(n) }
	told, skipped := map[string]bool{}, f.skipped(t)
	c.sender.Skipped = func(path, why string) {
		if !told[path] {
			told[path] = true
			skipped(path, why)
		}
	}
	if o.life != nil {
		var err error
		if c.life, err = o.life(ctx); err != nil {
			return err
		}
	}
	way := course{reached: c.sender.Reached, amount: m.text,
		next: "when the server is back, run the same command again; it starts over"}
	if c.given.keep(c.goes, time.Now()) == nil {
		way.next = fmt.Sprintf("when the server is back, run the same command again; within %s it continues from there",
			keptFor)
	}
	err := way.persist(ctx, relayed, func(after string) error { return c.leg(ctx, after != "") })
	if _, is := errors.AsType[gaveUp](err); is {
		_ = c.given.keep(c.goes, time.Now()) // from now on it is kept for a while
	} else {
		c.given.forget()
	}
	return err
}

// leg copies over one connection.
func (c *inward) leg(ctx context.Context, again bool) error {
	to := c.what.to
	if again {
		if err := c.sameRun(ctx); err != nil {
			return err
		}
	}
	if c.goes.folder != "" { // what was a name may be a folder by now
		to = strings.TrimSuffix(c.goes.folder, "/") + "/"
	}
	leg := c.sender.Leg()
	c.meter.bytes.Store(0)
	r, w := io.Pipe()
	over, sent := make(chan struct{}), make(chan error, 1)
	go func() {
		err := leg.Send(ctx, c.meter.writer(w), over, c.called)
		_ = w.Close() // a pipe's Close does not fail
		sent <- err
	}()
	// The copy is called off by a word of the sender's; only if the other side does not hear it is the line cut.
	line, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(partingTime, cut) })
	defer stop()
	errs := &early{to: c.errs, open: leg.Begun}
	code, err := c.o.run(line, cmdline.Terminal{In: r, Out: leg, Err: errs},
		ask.Archive{Container: c.o.container, Path: to, Unpack: true, Keep: c.goes.token})
	close(over)
	_ = r.CloseWithError(io.ErrClosedPipe) // as above
	here := <-sent
	if !leg.Begun() && !again && knowsNotOfKeeping(code, err) {
		return errKeepsNothing
	}
	errs.release()
	if !leg.Begun() && err == nil && code == notThere && strings.HasSuffix(to, "/") {
		return final{fmt.Errorf("%s has no folder %s", c.o.words, to)}
	}
	return ended(outcome(code, err), here)
}

// knowsNotOfKeeping reports whether that is how a request ends by a toolbox, or an API, that has no such flag.
func knowsNotOfKeeping(code int, err error) bool {
	refusal, is := errors.AsType[*apierrors.StatusError](err)
	return err == nil && code == cmdline.ExitUsage || is && refusal.ErrStatus.Code == http.StatusBadRequest
}

// ended is how a leg has ended, from how the other side did and how this one.
func ended(there, here error) error {
	switch {
	case here == nil:
		return there
	case !errors.Is(here, copyfiles.ErrLegOver) && !errors.Is(here, io.ErrClosedPipe) &&
		!errors.Is(here, context.Canceled): // a file that cannot be read
		return final{here}
	case there == nil:
		return final{fmt.Errorf("the copy was not taken whole: %w", here)}
	}
	return there
}

// called notes where the copy goes to and what it is called there, when the other side has told what the path is. It is
// kept at once: the copy may not live to be given up.
func (c *inward) called(into string) string {
	switch {
	case c.goes.folder != "": // known from a leg before
		return c.goes.name
	case into == copyfiles.IntoFolder:
		c.goes.folder, c.goes.name = c.what.to, c.what.base
	default:
		c.goes.folder, c.goes.name = path.Dir(c.what.to), path.Base(c.what.to)
	}
	_ = c.given.keep(c.goes, time.Now()) // if it cannot be, it could not be before
	return c.goes.name
}

// sameRun has all sent again that a container which was started anew has lost.
func (c *inward) sameRun(ctx context.Context) error {
	if c.o.life == nil {
		return nil
	}
	now, err := c.o.life(ctx)
	if err == nil && now != c.life {
		c.life = now
		c.sender.Again()
	}
	return err
}

// early holds back what the other side says until it has begun.
type early struct {
	to   io.Writer
	open func() bool
	mu   sync.Mutex
	held []byte
}

// Write implements io.Writer.
func (e *early) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held = append(e.held, p...)
	if e.open() {
		e.hand()
	}
	return len(p), nil
}

func (e *early) hand() {
	_, _ = e.to.Write(e.held) // the terminal's trouble is not the copy's
	e.held = nil
}

// release hands on what is held.
func (e *early) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.held) > 0 {
		e.hand()
	}
}
