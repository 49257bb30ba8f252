// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/go-runc"
)

// exitRecord is how a container's first process has ended, for whoever asks when the shim is gone.
type exitRecord struct {
	Pid    int       `json:"pid"`
	Status int       `json:"status"`
	At     time.Time `json:"at"`
}

// end sees the end of a container's first process through: nothing of the container runs any more when it returns.
func (c *container) end(e runc.Exit) error {
	var errs []error
	kill := func() {
		if !c.spec.sandbox() && c.spec.outlived() && c.where() != nil {
			errs = append(errs, c.where().kill())
		}
	}
	kill()
	// The end of a container is the last one of its processes'.
	c.closed()
	running := c.running()
	if len(running) > 0 {
		kill() // what came in between
	}
	for _, p := range running {
		<-p.ended
	}
	errs = append(errs, writeJSON(filepath.Join(c.bundle, exitFile), exitRecord{e.Pid, e.Status, e.Timestamp}))
	return errors.Join(errs...)
}

// unmake takes away all that was made for the container.
func (c *container) unmake(ctx context.Context) error {
	if c.spec.sandbox() {
		return c.where().remove()
	}
	if err := c.forget(ctx); err != nil {
		return err
	}
	if !c.mounted {
		return nil
	}
	return mount.UnmountRecursive(c.rootfs(), 0)
}

// forget has runc's state and the container's cgroup removed: by runc, or here where runc would do just that.
func (c *container) forget(ctx context.Context) error {
	state := filepath.Join(c.settings.Root, c.id)
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		return nil // it was never started, or runc has cleaned up after a failure
	}
	paths := c.where()
	if len(paths) > 0 && !c.settings.SystemdCgroup && !c.spec.hooked() {
		if paths.remove() == nil {
			return os.RemoveAll(state)
		}
	}
	err := c.runc(logFile).Delete(ctx, c.id, &runc.DeleteOpts{Force: true})
	if err != nil && strings.Contains(err.Error(), "does not exist") {
		return nil
	}
	return c.failure("failed to delete task", logFile, err)
}
