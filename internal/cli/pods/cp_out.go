// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/copyfiles"
	"github.com/wherryproject/wherry/internal/cli/session"
)

const (
	// cutPatience is how long a copy that was cut waits for a server to go on with.
	cutPatience = time.Minute
	// cutPause is how long it waits first; each time twice as long, to cutPauses.
	cutPause, cutPauses = 250 * time.Millisecond, 5 * time.Second
)

// out copies from the container.
func (f *cpFlags) out(ctx context.Context, t cmdline.Terminal, o other, from place, to string) error {
	meter := newMeter(t, f.quiet)
	defer meter.stop()
	relayed := newRelay(t.Err, o, meter)
	files := ask.Archive{Container: o.container, Path: from.path, Total: meter.shows}
	goesOn := func(into sink) error {
		return relayed.end(f.persist(ctx, relayed, func() string { return into.Reached().String() },
			func(after string) error {
				files.After, files.Total = after, files.Total && after == ""
				return f.once(ctx, o, files, relayed, meter, into)
			}))
	}
	if to == "-" {
		return goesOn(copyfiles.NewPasser(t.Out))
	}
	folder, name, err := localTarget(to, baseOf(from.path))
	if err != nil {
		return err
	}
	u, err := copyfiles.New(folder, name, f.skipped(t))
	if err != nil {
		return err
	}
	defer u.Close()
	if err := goesOn(u); ctx.Err() == nil || !u.Whole() {
		return err
	}
	return nil // called off when nothing was left to do
}

// sink is what an archive goes into: after one that was cut, another that goes on from where it was.
type sink interface {
	From(r io.Reader) error
	Reached() copyfiles.Reached
}

// persist copies, and goes on after a cut until the copy is whole or the server stays away.
// reached changes whenever the copy has come further; it is "" as long as there is nothing to go on with.
func (f *cpFlags) persist(ctx context.Context, relayed io.Writer, reached func() string,
	once func(after string) error) error {
	after := ""
	var cut error // the trouble of which the others may only be what follows
	pause, until := cutPause, time.Time{}
	for {
		err := once(after)
		switch now := reached(); {
		case err == nil:
			return nil
		case cut == nil && !session.Lost(err), !passes(err), ctx.Err() != nil:
			return err
		case cut == nil || now != after: // it has come further
			if now == "" {
				return err
			}
			fmt.Fprintf(relayed, "the connection was lost: the copy goes on from where it was\n")
			after, cut, pause, until = now, err, cutPause, time.Now().Add(cutPatience)
		case time.Now().After(until):
			return fmt.Errorf("%w; could not reconnect within %s: %w", cut, cutPatience, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, cutPauses)
	}
}

// passes reports whether what stands in the way of going on may be gone in a moment: the line, or who serves. What the
// server or the container has decided does not pass.
func passes(err error) bool {
	if _, here := errors.AsType[final](err); here {
		return false
	}
	if refusal, is := errors.AsType[*apierrors.StatusError](err); is {
		code := refusal.ErrStatus.Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	}
	_, line := errors.AsType[net.Error](err)
	return line || session.Lost(err) || !session.Reached(err) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// once copies what comes after a place in the archive, until its end or a cut.
func (f *cpFlags) once(ctx context.Context, o other, files ask.Archive, relayed io.Writer, meter *meter,
	u sink) error {
	r, w := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := u.From(r)
		if err == nil {
			_, err = io.Copy(io.Discard, r) // the padding after the archive's end
		} else if copyfiles.Cut(err) && u.Reached().String() == "" {
			err = nil // nothing came: the other side says why
		}
		r.CloseWithError(err)
		unpacked <- err
	}()
	err := outcome(o.run(ctx, cmdline.Terminal{Out: meter.writer(w), Err: relayed}, files))
	if err != nil {
		_ = w.CloseWithError(io.ErrUnexpectedEOF) // a pipe's Close does not fail
	} else {
		_ = w.Close() // as above
	}
	here := <-unpacked
	switch {
	case here == nil, copyfiles.Cut(here) && err != nil: // that follows from what the other side has met
		return err
	case copyfiles.Cut(here):
		return here
	case err == nil:
		err = here
	}
	return final{err}
}

// final is trouble on this side, or with what has come: a full disk, a name that is refused. To go on would meet it
// again.
type final struct{ error }

// Unwrap is for package errors.
func (f final) Unwrap() error { return f.error }

// baseOf is the name of what a path means; "/" if it is all that is in a folder, as FOLDER/. says.
func baseOf(text string) string {
	if allIn(text) {
		return "/"
	}
	return path.Base(path.Clean("/" + text))
}

// allIn reports whether a path means what is in a folder, and not the folder.
func allIn(text string) bool { return strings.HasSuffix(text, "/.") }

// localTarget is where a copy named base goes: into an existing folder, else it takes the destination's name.
func localTarget(to, base string) (folder, name string, err error) {
	info, err := os.Stat(to)
	switch {
	case err == nil && info.IsDir() && (base == "/" || strings.ContainsAny(base, "*?[")):
		return to, ".", nil // all of a folder, or what matches
	case err == nil && info.IsDir():
		return to, base, nil
	case cmdline.Replaceable(to) != nil:
		return "", "", cmdline.Replaceable(to)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", "", err
	case strings.HasSuffix(to, "/") || err != nil && strings.ContainsAny(base, "*?["):
		return "", "", fmt.Errorf("folder %s does not exist", to)
	}
	abs, err := filepath.Abs(to)
	if err != nil {
		return "", "", err
	}
	return filepath.Dir(abs), filepath.Base(abs), nil
}
