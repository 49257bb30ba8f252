// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("limit of processes of container %s: %w", container, err)
	}
	return nil
}
