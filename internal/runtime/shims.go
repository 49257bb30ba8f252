// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	runtimev2 "github.com/containerd/containerd/v2/core/runtime/v2"
	"github.com/containerd/containerd/v2/pkg/timeout"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/ttrpc"
)

// containerd cleans up after a shim whose connection is lost: it runs the shim's delete, which ends the container,
// within this time. That must not happen when it is we who leave.
const (
	shimCleanup     = "io.containerd.timeout.shim.cleanup"
	shimCleanupTime = 5 * time.Second // containerd's own
)

// leaveShims ends the connections to all shims, without ending what they run. containerd has no way to do so, since its
// process just ends; in a process that goes on, what happens to the shims later (another Start's work, or Purge's)
// would look like their death. To be called when containerd's databases are closed: its last words about the containers
// whose connections are lost then come to nothing.
func leaveShims(d *daemon) error {
	manager, err := instance[*runtimev2.TaskManager](d, plugins.RuntimePluginV2, "task")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	tasks, err := manager.Tasks(ctx, true)
	if err != nil {
		return err
	}
	timeout.Set(shimCleanup, time.Nanosecond) // no time to start a process
	for _, t := range tasks {
		shim, ok := t.(runtimev2.ShimInstance)
		if !ok {
			continue
		}
		_ = shim.Close()
		if c, ok := shim.Client().(*ttrpc.Client); ok {
			_ = c.UserOnCloseWait(ctx)
		}
	}
	return nil
}

// keepShims undoes what leaveShims set for the whole process.
func keepShims() { timeout.Set(shimCleanup, shimCleanupTime) }

// reapShims ends shims that nobody can reach: when a process dies between starting a shim and writing down how to reach
// it, the next one's containerd throws the bundle away, but not the shim. To be called when it has done so. which may
// spare some.
func (r *Runtime) reapShims(ctx context.Context, which func(id string) bool) error {
	fds, err := killShims(r.dirs, func(args []string) bool {
		id, abandoned := r.abandoned(args)
		return abandoned && which(id)
	})
	if err != nil {
		return err
	}
	if len(fds) > 0 {
		r.log.Info("stopped shims that had lost their containers", "count", len(fds))
	}
	if err := awaitGone(ctx, fds); err != nil {
		return fmt.Errorf("stopping shims: %w", err)
	}
	return nil
}

// abandoned reads a shim's command line and reports whether nothing is there that it serves. A bundle is made before
// its shim is started: so the bundles are looked at after the shim was seen.
func (r *Runtime) abandoned(args []string) (id string, _ bool) {
	id, serves := shimOf(args)
	if !serves {
		return "", false
	}
	needed, err := neededShims(r.tasks)
	return id, err == nil && !needed[id]
}

// shimRest is how long a shim is given to end by itself when its sandbox is gone.
const shimRest = 2 * time.Second

// reapLate looks once more for what removed sandboxes have left, and ends shims that outlive them: one that was still
// making a container when containerd gave up on that, and reported it gone, has the container on its list for good, and
// does not end when it is asked to. It goes on until the runtime is done.
func (r *Runtime) reapLate(ctx context.Context) {
	rest := func() (more bool) {
		select {
		case <-r.done:
		case <-time.After(shimRest):
			more = true
		}
		return more
	}
	for {
		select {
		case <-r.done:
			return
		case <-r.removed:
		}
		if !rest() {
			return
		}
		if err := r.reapLost(ctx, true); err != nil {
			r.log.Warn("orphaned containers could not be removed", "err", err)
		}
		seen := map[string]bool{}
		_, err := killShims(r.dirs, func(args []string) bool {
			if id, abandoned := r.abandoned(args); abandoned {
				seen[id] = true
			}
			return false
		})
		if err == nil && len(seen) > 0 {
			if !rest() { // perhaps it is just about to end
				return
			}
			err = r.reapShims(ctx, func(id string) bool { return seen[id] })
		}
		if err != nil {
			r.log.Warn("shims that outlived their sandboxes could not be stopped", "err", err)
		}
	}
}

// neededShims names the shims that serve any bundle: a sandbox's shim, which has its name, serves its containers too,
// also when the sandbox itself is gone.
func neededShims(bundles string) (map[string]bool, error) {
	entries, err := os.ReadDir(bundles)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[string]bool{}
	for _, e := range entries {
		out[e.Name()] = true
		sandbox, err := os.ReadFile(filepath.Join(bundles, e.Name(), "sandbox"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil {
			out[strings.TrimSpace(string(sandbox))] = true
		}
	}
	return out, nil
}

// shimOf reads a shim's command line: whose it is, and whether it serves, rather than being a short-lived command.
func shimOf(args []string) (id string, serves bool) {
	i := slices.Index(args, "-id")
	if i < 0 || i+1 >= len(args) || slices.Contains(args, "start") || slices.Contains(args, "delete") {
		return "", false
	}
	return args[i+1], args[i+1] != ""
}
