// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"time"

	runtimev2 "github.com/containerd/containerd/v2/core/runtime/v2"
	"github.com/containerd/containerd/v2/pkg/timeout"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/ttrpc"
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
