// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/wherryproject/wherry/internal/hostdebug/engines"
)

// neighbour is a container that is shown beside the target.
type neighbour struct {
	c    *engines.Container
	held *held // nil: it does not run
}

// holdAll opens descriptors of the processes of all containers that are shown or joined. One beside the target that has
// just ended is shown as one that does not run.
func (s *session) holdAll(ctx context.Context) (err error) {
	if t := s.req.Target; t != nil && t.Alive() {
		if s.held, err = hold(t.PID); err != nil {
			return err
		}
	}
	if s.req.Keeper > 0 {
		if s.keeper, err = hold(s.req.Keeper); err != nil {
			return err
		}
	}
	for _, c := range s.req.Beside {
		if t := s.req.Target; t != nil && t.ID == c.ID {
			continue
		}
		n := neighbour{c: c}
		if c.Alive() {
			if n.held, err = hold(c.PID); err != nil {
				s.note(fmt.Sprintf("container %s is not shown: %v", c.Name, err))
				continue
			}
		}
		s.beside = append(s.beside, n)
	}
	s.rechecked = func() error { return nil }
	if s.req.Recheck != nil { // concurrently with the preparations that do not depend on it
		answer := make(chan error, 1)
		go func() { answer <- s.req.Recheck(ctx) }()
		s.rechecked = sync.OnceValue(func() error { return <-answer })
	}
	return nil
}

// releaseAll closes what holdAll has opened.
func (s *session) releaseAll() {
	for _, h := range []*held{s.held, s.keeper} {
		if h != nil {
			h.close()
		}
	}
	for _, n := range s.beside {
		if n.held != nil {
			n.held.close()
		}
	}
}

// joined is the process of whose namespaces some are joined; nil for none.
func (s *session) joined() *held {
	if s.held != nil {
		return s.held
	}
	return s.keeper
}

// hostname is the name of a session that joins no UTS namespace.
func (s *session) hostname() string {
	if s.req.Target != nil {
		return s.req.Target.FolderName()
	}
	return "debug"
}

// showAll puts the files of all and what is known of them below a folder. It returns the name under which the first of
// them is there.
func (s *session) showAll(ctx context.Context, files string, uid, gid int) (first string, err error) {
	if t := s.req.Target; t != nil {
		if s.held == nil && s.req.Writable {
			return "", fmt.Errorf("%s is not running: its files are evidence, and can be read only", t.Target)
		}
		if err := s.show(ctx, neighbour{t, s.held}, files, uid, gid); err != nil {
			return "", err
		}
		first = t.FolderName()
	}
	for _, n := range s.beside {
		switch err := s.show(ctx, n, files, uid, gid); {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil:
			s.note(fmt.Sprintf("container %s is not shown: %v", n.c.Name, err))
			_ = os.Remove(filepath.Join(files, n.c.FolderName())) // nothing is mounted at it
		case first == "":
			first = n.c.FolderName()
		}
	}
	// Also where there is nothing to show.
	return first, os.MkdirAll(files, 0o755)
}

// show puts one container's files and what is known of it below a folder.
func (s *session) show(ctx context.Context, n neighbour, files string, uid, gid int) error {
	name := n.c.FolderName()
	at := filepath.Join(files, name)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	note, err := keepEvidence(ctx, n.c, filepath.Join(files, ".wherry", name), uid, gid)
	if err != nil {
		return err
	}
	if note != "" {
		s.note(note)
	}
	if n.held != nil {
		return showAlive(n.held, at, s.req.Writable)
	}
	notes, err := showDead(ctx, n.c, at)
	for _, text := range notes {
		s.note(text)
	}
	return err
}
