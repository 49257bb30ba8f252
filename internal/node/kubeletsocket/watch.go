// SPDX-License-Identifier: Apache-2.0

package kubeletsocket

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Watch calls serve for every socket that is in a folder, which it makes, or comes there, with a context that ends when
// the socket goes or is replaced. It works until ctx ends, and returns when all calls have.
func Watch(ctx context.Context, folder string, serve func(ctx context.Context, socket string)) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", folder, err)
	}
	defer w.Close()
	if err := w.Add(folder); err != nil {
		return fmt.Errorf("watching %s: %w", folder, err)
	}
	s := &served{ctx: ctx, serve: serve, ends: map[string]context.CancelFunc{}}
	defer s.calls.Wait()
	defer s.end("")
	if err := s.look(folder); err != nil { // after the watch has begun: none is missed
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-w.Events:
			switch {
			case e.Op.Has(fsnotify.Create):
				s.came(e.Name)
			case e.Op.Has(fsnotify.Remove), e.Op.Has(fsnotify.Rename):
				s.end(e.Name)
			}
		case <-w.Errors: // events were lost
			if err := s.look(folder); err != nil {
				return err
			}
		}
	}
}

// served are the sockets that are served; one goroutine has it.
type served struct {
	ctx   context.Context
	serve func(context.Context, string)
	ends  map[string]context.CancelFunc
	calls sync.WaitGroup
}

// look makes what is served equal to what is in the folder.
func (s *served) look(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, e := range entries {
		at := filepath.Join(folder, e.Name())
		there[at] = true
		if s.ends[at] == nil {
			s.came(at)
		}
	}
	for at := range s.ends {
		if !there[at] {
			s.end(at)
		}
	}
	return nil
}

// came begins to serve a socket; anything else is none of it.
func (s *served) came(at string) {
	info, err := os.Lstat(at)
	if err != nil || info.Mode().Type() != fs.ModeSocket || strings.HasPrefix(filepath.Base(at), ".") {
		return
	}
	s.end(at) // another of this name was there before
	ctx, cancel := context.WithCancel(s.ctx)
	s.ends[at] = cancel
	s.calls.Go(func() { s.serve(ctx, at) })
}

// end ends the serving of one socket, or with "" of all.
func (s *served) end(at string) {
	for name, cancel := range s.ends {
		if at == "" || name == at {
			cancel()
			delete(s.ends, name)
		}
	}
}
