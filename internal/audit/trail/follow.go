// SPDX-License-Identifier: Apache-2.0

package trail

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// Follow calls f for each event that the filter takes, of those the log already has and of those that come, until ctx
// is done or f returns an error. It goes on over rotation. ready, if not nil, is called when all that was there is
// read.
func Follow(ctx context.Context, path string, filter Filter, f func(Event) error, ready func()) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(filepath.Dir(path)); err != nil { // the folder: the file is replaced at rotation
		return err
	}
	t := &tail{path: path, filter: filter, f: f}
	defer t.close()
	for {
		if err := t.read(); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if ready != nil {
			ready()
			ready = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-watcher.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) { // what was missed is read all the same
				return err
			}
		case <-watcher.Events:
		}
	}
}

// tail reads a file as it grows, and the next one once it was rotated.
type tail struct {
	path   string
	filter Filter
	f      func(Event) error

	file *os.File
	in   *bufio.Reader
	part []byte // of a line that is not whole yet
}

// read reads what there is.
func (t *tail) read() error {
	for {
		if t.file == nil {
			if err := t.open(); errors.Is(err, fs.ErrNotExist) {
				return nil
			} else if err != nil {
				return err
			}
		}
		now, err := os.Stat(t.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		mine, serr := t.file.Stat()
		if serr != nil {
			return serr
		}
		if err := t.lines(); err != nil { // after the look at the path: what is written before a rotation is read
			return err
		}
		if now == nil || os.SameFile(now, mine) {
			return nil
		}
		t.close()
	}
}

func (t *tail) open() error {
	file, err := os.Open(t.path)
	if err != nil {
		return err
	}
	t.file, t.in, t.part = file, bufio.NewReaderSize(file, 64<<10), nil
	return nil
}

func (t *tail) lines() error {
	for {
		text, err := t.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if len(t.part)+len(text) <= maxLine {
			t.part = append(t.part, text...)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			continue
		}
		line := slices.Clone(t.part)
		t.part = t.part[:0]
		if _, err := take(line, t.filter, t.f); err != nil {
			return err
		}
	}
}

func (t *tail) close() {
	if t.file != nil {
		t.file.Close()
		t.file = nil
	}
}
