// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// LimitPIDs is part of Driver. A container that has ended meanwhile has no cgroup, and needs no limit.
func (d *driver) LimitPIDs(parent, container string, most int64) error {
	mount := d.config.Host.Mounts["pids"]
	if d.config.Host.V2 || mount == "" || most <= 0 {
		return nil
	}
	dir := filepath.Join(mount, parent, container)
	if d.layout.systemd {
		dir = filepath.Join(mount, parent, "cri-containerd-"+container+".scope")
	}
	err := os.WriteFile(filepath.Join(dir, "pids.max"), []byte(strconv.FormatInt(most, 10)), 0o644)
	if err != nil && !removed(err) {
		return fmt.Errorf("limit of processes of container %s: %w", container, err)
	}
	return nil
}

// removed reports whether an error of a cgroup's file is that the cgroup is gone: before the file was opened, or since.
func removed(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }
