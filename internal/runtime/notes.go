// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	tasktypes "github.com/containerd/containerd/api/types/task"
	"google.golang.org/grpc"
)

// tasksPlugin is the service through which the CRI speaks to the shims.
const tasksPlugin = "io.containerd.service.v1.tasks-service"

// end is how a container ended.
type end struct {
	At   time.Time
	Code uint32
}

// note is the file, beside the CRI's record of a container, in which its end is noted.
const note = "end"

// notedTasks is containerd's tasks service, but it notes how a container ended before the shim is asked to forget it.
// The CRI does the latter first and then writes its own record: a process that dies in between would leave nobody who
// knows.
type notedTasks struct {
	tasks.TasksClient
	dirs dirs
	log  *slog.Logger
}

// wrapTasks returns what is to take the place of the tasks service.
func wrapTasks(inner any, d dirs, log *slog.Logger) (tasks.TasksClient, error) {
	client, ok := inner.(tasks.TasksClient)
	if !ok {
		return nil, fmt.Errorf("the tasks service is a %T", inner)
	}
	return &notedTasks{client, d, log}, nil
}

// Delete implements tasks.TasksClient.
func (n *notedTasks) Delete(ctx context.Context, in *tasks.DeleteTaskRequest,
	opts ...grpc.CallOption) (*tasks.DeleteResponse, error) {
	dir := filepath.Join(n.dirs.root, criPlugin, "containers", in.ContainerID)
	if _, err := os.Stat(dir); err == nil { // a sandbox has none
		r, err := n.Get(ctx, &tasks.GetRequest{ContainerID: in.ContainerID}, opts...)
		if err == nil && r.Process.GetStatus() == tasktypes.Status_STOPPED && r.Process.ExitedAt != nil {
			if err := writeNote(dir, end{r.Process.ExitedAt.AsTime(), r.Process.ExitStatus}); err != nil {
				n.log.Warn("cannot record how a container ended", "container", in.ContainerID, "err", err)
			}
		}
	}
	return n.TasksClient.Delete(ctx, in, opts...)
}

func writeNote(dir string, e end) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, note), text, 0o600)
}

// noted reads what was noted; nil if nothing was, or it was cut short.
func noted(dir string) (*end, error) {
	text, err := os.ReadFile(filepath.Join(dir, note))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e := &end{}
	if json.Unmarshal(text, e) != nil {
		return nil, nil
	}
	return e, nil
}
