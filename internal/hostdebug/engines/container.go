// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// State is whether a target runs.
type State string

// The states.
const (
	Created State = "created" // and never started
	Running State = "running"
	Paused  State = "paused" // it has processes, which do not go on
	Exited  State = "exited"
)

// Container is what is known of a target.
type Container struct {
	Target target.Target // as it is written, by its name where it has one
	ID     string        // empty for processes and units
	Name   string
	Image  string
	State  State
	PID    int // of its first process; 0 if there is none

	Created, Started, Finished time.Time

	ExitCode  int
	OOMKilled bool
	Error     string // of the engine, for one that could not be started

	User string   // as it was configured: a name or number, with a group or not
	Env  []string // of its first process
	Args []string // that it was started with

	ReadOnly    bool  // its root filesystem, for itself
	MemoryLimit int64 // bytes; 0: none that its engine knows of
	Restarts    int   // by its engine
	Health      *Health

	// Layers are its files while it does not run; nil where its engine does not report them.
	Layers *Layers
	// Binds are the volumes that its files have then, in the order in which they were mounted.
	Binds []Bind

	// ReadLog reads the last lines of what it has written; nil where its engine has none.
	ReadLog func(ctx context.Context, lines int) (io.ReadCloser, error)
	// OpenImage reads an image that its engine has, as an archive of Docker's; nil where the engine is asked elsewhere.
	OpenImage func(ctx context.Context, image string) (io.ReadCloser, error)
}

// Health is what a container's own health check has found.
type Health struct {
	Status  string // starting, healthy, unhealthy
	Failing int    // checks in a row
	Code    int    // exit code of the last one
	Output  string // of the last one
}

// Alive reports whether there is a process to join.
func (c *Container) Alive() bool { return c.PID > 0 }

// Layers make up a root filesystem: an overlay of folders, the uppermost first, or a single folder or mount.
type Layers struct {
	Overlay []string // folders; with one alone it is no overlay
	Options []string // of the overlay, as the engine mounts it: userxattr, index=off, metacopy=on
}

// Bind is a file or folder of this machine that a container sees.
type Bind struct {
	From, At string
	ReadOnly bool
}

// NoLog is the error of [Container.Log] for what has none that can be asked for.
type NoLog struct{ Why string }

func (e *NoLog) Error() string { return e.Why }

// Log reads the last lines of what the target has written.
func (c *Container) Log(ctx context.Context, lines int) (io.ReadCloser, error) {
	if c.ReadLog == nil {
		return nil, &NoLog{fmt.Sprintf("the log of %s is not with its engine", c.Target)}
	}
	return c.ReadLog(ctx, lines)
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// FolderName is the name under which the target's files are shown: that of the container, with nothing in it that a
// shell or a path takes for more.
func (c *Container) FolderName() string {
	name := strings.Trim(unfit.ReplaceAllString(strings.TrimPrefix(c.Name, "/"), "-"), "-.")
	if name == "" {
		return "target"
	}
	return name
}

// Options are what an engine is found by.
type Options struct {
	Address string // of its socket; empty: the usual ones
	Getenv  func(string) string
	UID     int    // of who asks
	Proc    string // where the process table is mounted: /proc
	// Snapshots finds the layers of a container in containerd, where Docker keeps them there.
	Snapshots func(ctx context.Context, namespace, id string) (*Layers, error)
}

// caller is the user whose own engines are asked besides root's: the one who called sudo, or who runs this process.
func (o Options) caller() int {
	if who, ok := sudoer(o.Getenv("SUDO_UID")); ok && o.UID == 0 {
		return int(who.uid)
	}
	return o.UID
}

// Engine is one container engine.
type Engine interface {
	// Find looks up one target.
	Find(ctx context.Context, t target.Target) (*Container, error)
	// List returns all targets of the engine.
	List(ctx context.Context) ([]*Container, error)
}

// Of is the engine of a kind, if it can be asked without a library of its own; nil for the others.
func Of(ctx context.Context, kind target.Engine, o Options) (Engine, error) {
	switch kind {
	case target.Docker:
		return newDocker(ctx, o)
	case target.Podman:
		return newPodman(o)
	case target.PID:
		return processes{o.Proc}, nil
	case target.Systemd:
		return units{processes{o.Proc}, booted}, nil
	}
	return nil, nil
}
