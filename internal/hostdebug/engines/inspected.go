// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// inspected is what docker inspect and podman inspect print of a container.
type inspected struct {
	ID      string `json:"Id"`
	Name    string
	Created time.Time
	Path    string
	Args    []string
	// Image is a digest in Docker; ImageName is the image's name in podman.
	ImageName    string
	RestartCount int
	State        struct {
		Status                string
		PID                   int `json:"Pid"`
		ExitCode              int
		OOMKilled             bool
		Error                 string
		StartedAt, FinishedAt time.Time
		Health, Healthcheck   *health // Docker's word, and that of older podmans
	}
	Config struct {
		Image string
		User  string
		Env   []string
		TTY   bool `json:"Tty"`
	}
	HostConfig struct {
		ReadonlyRootfs bool
		Memory         int64
	}
	GraphDriver struct {
		Name string
		Data map[string]string
	}
	Mounts []struct {
		Type, Source, Destination string
		RW                        bool
	}
}

// health is a health check.
type health struct {
	Status        string
	FailingStreak int
	Log           []struct {
		ExitCode int
		Output   string
	}
}

// last is what the last check has found; nil where there is none.
func (h *health) last() *Health {
	if h == nil || h.Status == "" || h.Status == "none" {
		return nil
	}
	out := &Health{Status: h.Status, Failing: h.FailingStreak}
	if n := len(h.Log); n > 0 {
		out.Code, out.Output = h.Log[n-1].ExitCode, h.Log[n-1].Output
	}
	return out
}

// container converts it to a Container.
func (i *inspected) container(kind target.Engine) *Container {
	c := &Container{
		ID: i.ID, Name: strings.TrimPrefix(i.Name, "/"), Image: i.Config.Image, State: stateOf(i.State.Status),
		PID: max(i.State.PID, 0), Created: i.Created, Started: i.State.StartedAt, Finished: i.State.FinishedAt,
		ExitCode: i.State.ExitCode, OOMKilled: i.State.OOMKilled, Error: i.State.Error,
		User: i.Config.User, Env: i.Config.Env, ReadOnly: i.HostConfig.ReadonlyRootfs,
		Args: append([]string{i.Path}, i.Args...), MemoryLimit: i.HostConfig.Memory, Restarts: i.RestartCount,
		Health: cmp.Or(i.State.Health, i.State.Healthcheck).last(),
	}
	if i.ImageName != "" {
		c.Image = i.ImageName
	}
	c.Target = target.Target{Engine: kind, Name: nameOrID(c.Name, c.ID)}
	if c.State != Running && c.State != Paused {
		c.PID = 0
	}
	if dirs := i.overlay(); len(dirs) > 0 {
		c.Layers = &Layers{Overlay: dirs}
	}
	for _, m := range i.Mounts {
		if m.Source != "" && m.Type != "tmpfs" {
			c.Binds = append(c.Binds, Bind{From: m.Source, At: m.Destination, ReadOnly: !m.RW})
		}
	}
	return c
}

// overlay are the layers by the storage driver, the uppermost first.
func (i *inspected) overlay() []string {
	switch i.GraphDriver.Name {
	case "overlay", "overlay2", "fuse-overlayfs":
		var dirs []string
		if upper := i.GraphDriver.Data["UpperDir"]; upper != "" {
			dirs = append(dirs, upper)
		}
		for _, lower := range strings.Split(i.GraphDriver.Data["LowerDir"], ":") {
			if lower != "" {
				dirs = append(dirs, lower)
			}
		}
		return dirs
	case "vfs", "btrfs", "zfs":
		if dir := i.GraphDriver.Data["MergedDir"]; dir != "" {
			return []string{dir}
		}
	}
	return nil
}

// maxFrame bounds a piece of a log: Docker cuts lines at 16 KiB.
const maxFrame = 16 << 20

// frames unwraps the output of a container without a terminal from Docker's framing: a byte for the stream, three zero
// bytes, the length, the data.
type frames struct {
	from io.ReadCloser
	left uint32
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	for f.left == 0 {
		var head [8]byte
		if _, err := io.ReadFull(f.from, head[:]); err != nil {
			return 0, err
		}
		f.left = binary.BigEndian.Uint32(head[4:])
		if head[0] > 2 || f.left > maxFrame {
			return 0, fmt.Errorf("a log that is not framed as Docker's are")
		}
	}
	n, err := f.from.Read(p[:min(len(p), int(f.left))])
	f.left -= uint32(n)
	if err == io.EOF && f.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close implements io.Closer.
func (f *frames) Close() error { return f.from.Close() }
