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

	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// containerd cleans up after a shim whose connection is lost: it runs the shim's delete, which ends the container, within
// this time. That must not happen when it is we who leave.
const (
	shimCleanup     = "io.containerd.timeout.shim.cleanup"
	shimCleanupTime = 5 * time.Second // containerd's own
)

// leaveShims ends the connections to all shims, without ending what they run. containerd has no way to do so, since its
// process just ends; in a process that goes on, what happens to the shims later (another Start's work, or Purge's) would
// look like their death. To be called when containerd's databases are closed: its last words about the containers whose
// connections are lost then come to nothing.
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

// reapShims ends shims that nobody can reach: when a process dies between starting a shim and writing down how to reach it,
// the next one's containerd throws the bundle away, but not the shim. To be called when it has done so, and before it is
// asked to start any.
func (r *Runtime) reapShims(ctx context.Context) error {
	needed, err := neededShims(filepath.Join(r.dirs.run, "io.containerd.runtime.v2.task", Namespace))
	if err != nil {
		return err
	}
	fds, err := killByExecutable(filepath.Join(r.dirs.bin, bundle.Shim), func(args []string) bool {
		id, serves := shimOf(args)
		return serves && !needed[id]
	})
	if err != nil {
		return err
	}
	if len(fds) > 0 {
		r.log.Info("shims that were cut off from their containers have been ended", "count", len(fds))
	}
	if err := awaitGone(ctx, fds); err != nil {
		return fmt.Errorf("ending shims: %w", err)
	}
	return nil
}

// neededShims names the shims that serve any bundle: a sandbox's shim, which has its name, serves its containers too, also
// when the sandbox itself is gone.
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
