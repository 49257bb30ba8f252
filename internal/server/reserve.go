// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// reserveBytes is what is kept in the data folder for a full disk: enough for the runtime to end a pod, and for a
	// server to start that then clears the disk (RS-02). The store holds its own reserve, where nobody else can take
	// it.
	reserveBytes = 16 << 20
	// reserveFrom is how much must be free for the reserve to be made: 16 times itself.
	reserveFrom = 16 * reserveBytes
	// reserveUntil is how little must be free for it to be given up.
	reserveUntil = reserveBytes / 2
)

// reserve is a file that takes room on the disk of a data folder as long as nobody needs it.
type reserve struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex
	held bool
}

func newReserve(dataDir string, log *slog.Logger) *reserve {
	r := &reserve{path: filepath.Join(dataDir, "reserve"), log: log}
	var file unix.Stat_t
	err := unix.Stat(r.path, &file)
	r.held = err == nil && file.Blocks*512 >= reserveBytes // who was killed while laying it out has left less
	return r
}

// measured is called with how much of the disk is free, and gives the reserve up or makes it again.
func (r *reserve) measured(free int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.held && free < reserveUntil:
		if err := os.Remove(r.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.log.Warn("cannot give up the reserve on the disk", "file", r.path, "err", err)
			return
		}
		r.held = false
		r.log.Warn("the disk of the data folder is full: the reserve on it is given up, so that pods can be ended",
			"bytes", reserveBytes)
	case !r.held && free >= reserveFrom:
		if err := layOut(r.path, reserveBytes); err != nil {
			r.log.Debug("no reserve can be made on the disk", "file", r.path, "err", err)
			return
		}
		r.held = true
	}
}

// layOut makes a file that really takes its size; if it cannot, there is none.
func layOut(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, size), f.Close())
	if err != nil {
		os.Remove(path)
	}
	return err
}
