// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Read writes the log file at path to stdout and stderr as opts asks: follow, tailLines, sinceSeconds and sinceTime,
// timestamps, limitBytes, stream. A nil writer means that the stream is not wanted; both may be the same writer.
// tailLines counts lines of the wanted streams, of which the other options then choose.
//
// When following, Read waits for a file that is not there yet, goes on over rotations, and returns nil after running
// returned false and all was read; or ctx's error. A nil running means that the container has ended. running is asked
// when the runtime closes the log, and every few seconds.
//
// It returns the offset of the file, in bytes, up to which it has read whole lines: there [Replay] goes on.
func Read(ctx context.Context, path string, opts *corev1.PodLogOptions, running func() bool, stdout,
	stderr io.Writer) (to int64, err error) {
	if running == nil {
		running = func() bool { return false }
	}
	return read(ctx, path, opts, ending{running: running}, stdout, stderr)
}

func read(ctx context.Context, path string, opts *corev1.PodLogOptions, end ending, stdout,
	stderr io.Writer) (int64, error) {
	out, lines := newOutput(opts, stdout, stderr)
	f := &follower{path: path, out: out, end: end}
	if opts.Follow {
		w, err := watch(filepath.Dir(path))
		if err != nil {
			return 0, err
		}
		defer w.stop()
		f.watcher = w
	}
	defer f.close()
	err := f.open(ctx)
	if err == nil {
		err = f.seek(lines)
	}
	if err == nil {
		err = f.run(ctx)
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return f.read, err
}

func newOutput(opts *corev1.PodLogOptions, stdout, stderr io.Writer) (*output, int64) {
	out := &output{to: [streams]io.Writer{stdout, stderr}, stamps: opts.Timestamps, limit: -1}
	if opts.Stream != nil {
		switch *opts.Stream {
		case corev1.LogStreamStdout:
			out.to[Stderr] = nil
		case corev1.LogStreamStderr:
			out.to[Stdout] = nil
		}
	}
	if opts.LimitBytes != nil {
		out.limit = max(*opts.LimitBytes, 0)
	}
	switch {
	case opts.SinceTime != nil:
		out.since = opts.SinceTime.Time
	case opts.SinceSeconds != nil:
		out.since = time.Now().Add(-podspec.Seconds(*opts.SinceSeconds))
	}
	lines := int64(-1)
	if opts.TailLines != nil {
		lines = max(*opts.TailLines, 0)
	}
	return out, lines
}

// follower reads a log through its files.
type follower struct {
	path    string
	out     *output
	end     ending
	watcher *watcher // nil: not following

	file  *os.File
	lines *lineReader
	heads heads
	read  int64 // of the file: the end of the last line that was handed on
}

// open opens the log. A log that is followed may have to be waited for.
func (f *follower) open(ctx context.Context) error {
	for {
		file, err := os.Open(f.path)
		if err == nil {
			f.use(file, file)
			return f.reach()
		}
		if f.watcher == nil || !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("container log: %w", err)
		}
		ended, werr := f.end.wait(ctx, f.watcher)
		if werr != nil {
			return werr
		}
		if ended {
			if file, err = os.Open(f.path); err != nil {
				return fmt.Errorf("container log: %w", err)
			}
			f.use(file, file)
			return nil
		}
	}
}

// reach has the watcher hear of the log where it really is.
func (f *follower) reach() error {
	if f.watcher == nil {
		return nil
	}
	return f.watcher.follow(f.path)
}

func (f *follower) use(file *os.File, r io.Reader) {
	f.close()
	f.file, f.lines = file, &lineReader{from: r}
}

func (f *follower) close() {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
}

// seek goes to where the last n lines begin; a negative n means all.
func (f *follower) seek(n int64) error {
	if n < 0 {
		return nil
	}
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	start, skip, err := tail(f.file, info.Size(), n, f.out.wanted)
	if err != nil {
		return fmt.Errorf("container log: %w", err)
	}
	if _, err := f.file.Seek(start, io.SeekStart); err != nil {
		return err
	}
	f.lines.offset, f.out.skip = start, skip
	return nil
}

// run reads to the end, in the sense of the options.
func (f *follower) run(ctx context.Context) error {
	ended := f.watcher == nil
	for {
		if err := f.drain(ctx); err != nil {
			return err
		}
		if f.watcher != nil {
			moved, err := f.advance(ctx)
			if err != nil {
				return err
			}
			if moved {
				continue
			}
		}
		if ended {
			return f.finish()
		}
		var err error
		if ended, err = f.end.wait(ctx, f.watcher); err != nil {
			return err
		}
	}
}

// drain writes what is there.
func (f *follower) drain(ctx context.Context) error {
	defer func() { f.read = f.lines.consumed() }()
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := f.lines.next()
		if errors.Is(err, io.EOF) {
			return f.out.flush()
		}
		if err != nil {
			return fmt.Errorf("container log: %w", err)
		}
		if e, ok := f.heads.parse(line); ok {
			if err := f.out.add(e); err != nil {
				return err
			}
		}
	}
}

// finish takes the end as the end: also of lines that have none.
func (f *follower) finish() error {
	if err := f.leave(); err != nil {
		return err
	}
	return f.out.finish()
}

// leave takes the last line of a file, should its writer not have come to its newline.
func (f *follower) leave() error {
	if e, ok := Parse(f.lines.rest()); ok {
		return f.out.add(e)
	}
	return nil
}

// advance goes on to the next file when the log was rotated, or to the beginning when it was cut. It says whether there
// is something new to read.
func (f *follower) advance(ctx context.Context) (bool, error) {
	here, err := f.file.Stat()
	if err != nil {
		return false, err
	}
	if f.lines.from == io.Reader(f.file) && here.Size() < f.lines.offset {
		_, err := f.file.Seek(0, io.SeekStart)
		f.lines = &lineReader{from: f.file}
		return true, err
	}
	there, err := os.Stat(f.path)
	if err != nil || os.SameFile(here, there) {
		return false, nil // not there: between the two steps of a rotation, or the pod is being removed
	}
	name := f.name()
	if err := f.outlast(ctx, name); err != nil {
		return false, err
	}
	return f.openAfter(name)
}

// How long a file that was rotated away is waited for until its writer closes it: on a busy machine the runtime has a
// hundred lines for it yet when the new file is there. Without inotify nobody hears of that.
const (
	outlastClose = 5 * time.Second
	outlastPoll  = 500 * time.Millisecond
)

// outlast reads on in a file that was rotated away until its writer has closed it, under its new name or, as engines
// that rotate their logs themselves do, before it had one: there may be a last write after the new file came to be.
func (f *follower) outlast(ctx context.Context, name string) error {
	patience := outlastClose
	if f.watcher.inotify == nil {
		patience = outlastPoll
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	closed := func() bool {
		return f.watcher.wasClosed(filepath.Base(name)) || f.watcher.wasClosed(filepath.Base(f.path))
	}
	for waiting := f.isRotated(name); waiting && !closed(); {
		wake, tick := f.watcher.events()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
		case <-tick:
		case <-limit.C:
			waiting = false
		}
	}
	if err := f.drain(ctx); err != nil {
		return err
	}
	return f.leave()
}

// isRotated says whether name is that of an uncompressed rotated file of the log.
func (f *follower) isRotated(name string) bool {
	return strings.HasPrefix(filepath.Base(name), filepath.Base(f.path)+".") && !strings.HasSuffix(name, gz)
}

// name is what the open file is called by now.
func (f *follower) name() string {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.file.Fd()))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(name, " (deleted)")
}

// openAfter opens the file that follows the rotated one of that name: the next one rotated, if there were several
// rotations, or the log itself. It says no when that is not there yet.
func (f *follower) openAfter(name string) (bool, error) {
	// In this order: a rotation after the log was opened shows in the list.
	current, err := os.Open(f.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("container log: %w", err)
	}
	next, err := f.rotatedAfter(name)
	if err == nil && next != "" {
		if current != nil {
			current.Close()
		}
		return f.openRotated(next)
	}
	if err != nil || current == nil {
		return false, err
	}
	f.use(current, current)
	return true, nil
}

// rotatedAfter names the file rotated next after the one of that name, or "".
func (f *follower) rotatedAfter(name string) (string, error) {
	if !strings.HasPrefix(filepath.Base(name), filepath.Base(f.path)+".") {
		return "", nil
	}
	for before := ""; ; {
		files, err := rotated(f.path)
		if err != nil {
			return "", err
		}
		next := ""
		for _, r := range files {
			if next == "" && stampOf(r) > stampOf(name) {
				next = r
			}
		}
		// A listing while a file is exchanged for its compressed form may miss both: believe only what is seen twice.
		seen := "seen " + stampOf(next)
		if seen == before {
			return next, nil
		}
		before = seen
	}
}

// openRotated opens a rotated file, compressed or not.
func (f *follower) openRotated(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) && !strings.HasSuffix(path, gz) {
		path += gz // compressed meanwhile
		file, err = os.Open(path)
	}
	if err != nil {
		return false, fmt.Errorf("container log: %w", err)
	}
	if !strings.HasSuffix(path, gz) {
		f.use(file, file)
		return true, nil
	}
	z, err := gzip.NewReader(file)
	if err != nil {
		file.Close()
		return false, fmt.Errorf("container log %s: %w", path, err)
	}
	f.use(file, z)
	return true, nil
}
