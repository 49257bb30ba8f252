// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/copyfiles"
	"github.com/wherryproject/wherry/internal/cli/session"
)

// in copies into the container.
func (f *cpFlags) in(ctx context.Context, t cmdline.Terminal, o other, from string, to place) error {
	relayed := newRelay(t.Err, o, nil)
	if from == "-" { // what has come by a pipe cannot be read again
		err := outcome(f.unpack(ctx, t.In, relayed, o, to.path))
		if session.Lost(err) && ctx.Err() == nil {
			err = worded(err,
				"the copy was cut in the middle of an archive that cannot be read again; files that had come whole are in place")
		}
		return relayed.end(err)
	}
	abs, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	total, err := copyfiles.Size(abs)
	if err != nil {
		return err
	}
	base := filepath.Base(abs)
	if allIn(from) {
		base = "."
	}
	meter := newMeter(t, f.quiet)
	meter.total.Store(total)
	defer meter.stop()
	err = f.send(ctx, t, o, relayed, meter, sending{local: abs, to: to.path, base: base})
	if errors.Is(err, errKeepsNothing) {
		err = f.inAtOnce(ctx, t, o, relayed, meter, sending{local: abs, to: to.path, base: base})
	}
	return relayed.end(err)
}

// sending is a copy into a container.
type sending struct {
	local string // what is copied, on this machine
	to    string // the path that it is copied to, in the container
	base  string // its name in a folder
}

// inAtOnce copies into a container by a toolbox that keeps nothing of a copy that is cut off: an older server's.
func (f *cpFlags) inAtOnce(ctx context.Context, t cmdline.Terminal, o other, relayed io.Writer, meter *meter,
	s sending) error {
	folder, name, err := f.remoteTarget(ctx, o, s.to, s.base)
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := copyfiles.Pack(meter.writer(w), s.local, name, f.skipped(t))
		_ = w.CloseWithError(err) // a pipe's Close does not fail
		packed <- err
	}()
	err = outcome(f.unpack(ctx, r, relayed, o, folder))
	_ = r.CloseWithError(io.ErrClosedPipe) // ends the packing if the other side gave up
	if perr := <-packed; perr != nil && !errors.Is(perr, io.ErrClosedPipe) {
		return errors.Join(perr, err)
	}
	return err
}

// partingTime is how long the other side may take to clean up after an archive that was cut off.
const partingTime = 5 * time.Second

// unpack hands an archive over. When the user calls it off the archive ends in the middle, and the other side takes
// away what is not whole; only if it does not is the line cut.
func (f *cpFlags) unpack(ctx context.Context, archive io.Reader, relayed io.Writer, o other,
	folder string) (int, error) {
	line, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(partingTime, cut) })
	defer stop()
	in := cmdline.Until(ctx, archive)
	return o.run(line, cmdline.Terminal{In: in, Out: io.Discard, Err: relayed},
		ask.Archive{Container: o.container, Path: folder, Unpack: true})
}

// notThere is the exit code by which the toolbox says that a path does not exist, or is no folder.
const notThere = 3

// remoteTarget is where a copy named base goes: into an existing folder, else it takes the destination's name. Whether
// it is a folder is seen by unpacking nothing into it.
func (f *cpFlags) remoteTarget(ctx context.Context, o other, to, base string) (folder, name string, err error) {
	var nothing, trouble bytes.Buffer
	if err := tar.NewWriter(&nothing).Close(); err != nil {
		return "", "", err
	}
	code, err := o.run(ctx, cmdline.Terminal{In: &nothing, Out: io.Discard, Err: &trouble},
		ask.Archive{Container: o.container, Path: to, Unpack: true})
	switch {
	case err != nil:
		return "", "", cmdline.ExitWith(code, err)
	case code == 0:
		return to, base, nil
	case code == notThere && strings.HasSuffix(to, "/"):
		return "", "", fmt.Errorf("%s has no folder %s", o.words, to)
	case code == notThere:
		return path.Dir(to), path.Base(to), nil
	}
	var text bytes.Buffer
	relayed := newRelay(&text, o, nil)
	_, _ = relayed.Write(trouble.Bytes())
	_ = relayed.end(&cmdline.Exit{Code: 1})
	return "", "", errors.New(strings.TrimSpace(text.String()))
}
