// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/copyfiles"
)

// out copies from the container.
func (f *cpFlags) out(ctx context.Context, t cmdline.Terminal, o other, from place, to string) error {
	meter := newMeter(t, f.quiet)
	defer meter.stop()
	relayed := newRelay(t.Err, o, meter)
	files := ask.Archive{Container: o.container, Path: from.path, Total: meter.shows}
	goesOn := func(into sink, next string) error {
		c := course{reached: func() string { return into.Reached().String() }, amount: meter.text, next: next}
		return relayed.end(c.persist(ctx, relayed,
			func(after string) error {
				files.After, files.Total = after, files.Total && after == ""
				return f.once(ctx, o, files, relayed, meter, into)
			}))
	}
	if to == "-" {
		return goesOn(copyfiles.NewPasser(t.Out), "what was written ends in the middle of the archive")
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
	next := "files that were copied whole are in place, and nothing is left of the others: run the same command again when the server is back; it starts over"
	if err := goesOn(u, next); ctx.Err() == nil || !u.Whole() {
		return err
	}
	return nil // called off when nothing was left to do
}

// sink is what an archive goes into: after one that was cut, another that goes on from where it was.
type sink interface {
	From(r io.Reader) error
	Reached() copyfiles.Reached
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
