// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	tasktypes "github.com/containerd/containerd/api/types/task"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// tasksPlugin is the service through which the CRI speaks to the shims.
const tasksPlugin = "io.containerd.service.v1.tasks-service"

// end is how a container ended.
type end struct {
	At   time.Time
	Code uint32
	Ran  bool `json:",omitempty"` // its start is known to have succeeded; one whose program is not there ends as well
}

// note is the file, beside the CRI's record of a container, in which its end is noted.
const note = "end"

// noteSize is more than an end takes.
const noteSize = 128

// killedCode is the exit code of what was killed.
const killedCode = 128 + uint32(unix.SIGKILL)

// notedTasks is containerd's tasks service, but it notes how a container ended before the shim is asked to forget it.
// The CRI does the latter first and then writes its own record: a process that dies in between would leave nobody who
// knows.
type notedTasks struct {
	tasks.TasksClient
	dirs dirs
	log  *slog.Logger
	ran  sync.Map // the ids of containers that this process has started and not deleted
}

// wrapTasks returns what is to take the place of the tasks service.
func wrapTasks(inner any, d dirs, log *slog.Logger) (tasks.TasksClient, error) {
	client, ok := inner.(tasks.TasksClient)
	if !ok {
		return nil, fmt.Errorf("the tasks service is a %T", inner)
	}
	return &notedTasks{TasksClient: client, dirs: d, log: log}, nil
}

// Start implements tasks.TasksClient.
func (n *notedTasks) Start(ctx context.Context, in *tasks.StartRequest,
	opts ...grpc.CallOption) (*tasks.StartResponse, error) {
	if in.ExecID == "" {
		if err := n.dirs.blankNote(in.ContainerID); err != nil {
			return nil, fmt.Errorf("what is noted of an earlier start: %w", err)
		}
	}
	r, err := n.TasksClient.Start(ctx, in, opts...)
	if err == nil && in.ExecID == "" {
		n.ran.Store(in.ContainerID, nil)
	}
	return r, err
}

// Delete implements tasks.TasksClient.
func (n *notedTasks) Delete(ctx context.Context, in *tasks.DeleteTaskRequest,
	opts ...grpc.CallOption) (*tasks.DeleteResponse, error) {
	dir := n.dirs.containerRecords(in.ContainerID)
	_, ran := n.ran.Load(in.ContainerID)
	if _, err := os.Stat(dir); err == nil { // a sandbox has none
		r, err := n.Get(ctx, &tasks.GetRequest{ContainerID: in.ContainerID}, opts...)
		if err == nil && r.Process.GetStatus() == tasktypes.Status_STOPPED && r.Process.ExitedAt != nil {
			if err := writeNote(dir, end{r.Process.ExitedAt.AsTime(), r.Process.ExitStatus, ran}); err != nil {
				n.log.Warn("cannot record how a container ended", "container", in.ContainerID, "err", err)
			}
		}
	}
	r, err := n.TasksClient.Delete(ctx, in, opts...)
	if err == nil {
		n.ran.Delete(in.ContainerID)
	}
	return r, err
}

// roomForNote takes the room in which a container's end will be noted: before it is started, so that a disk that is
// full by then keeps it from being started, and not from being known how it ended (SC-19).
func (d dirs) roomForNote(id string) error {
	if filepath.Base(filepath.Join("/", id)) != id {
		return nil // no container is called so
	}
	path := filepath.Join(d.containerRecords(id), note)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil // it is there; or there is no such container, as the CRI will say
	}
	if err == nil {
		_, err = f.Write(bytes.Repeat([]byte{' '}, noteSize))
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("the disk on which the node keeps its containers (%s) is full: %w", d.root, unix.ENOSPC)
	}
	return err
}

// blankNote takes back what is noted of an earlier start, whose failure could not be recorded: the container would
// count as ended at the next start of the server, while it runs. The room for the note stays.
func (d dirs) blankNote(id string) error {
	f, err := os.OpenFile(filepath.Join(d.containerRecords(id), note), os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a sandbox, or there was no room to take
	}
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Repeat([]byte{' '}, noteSize))
	return errors.Join(err, f.Close())
}

// correct has a container that ended by itself while its start could not be recorded be what it is: one that has ended.
// The CRI says of it that it could not be started, or that it was not, and it would be run a second time (SC-19). s may
// be nil.
func (d dirs) correct(s *criapi.ContainerStatus) {
	unstarted := s.GetState() == criapi.ContainerState_CONTAINER_CREATED ||
		s.GetState() == criapi.ContainerState_CONTAINER_EXITED && s.GetReason() == startFailed
	if s == nil || !unstarted {
		return
	}
	how, err := noted(d.containerRecords(s.GetId()))
	if err != nil || how == nil || !how.Ran || how.Code == killedCode {
		return // it never ran, or was killed because its start had failed
	}
	s.State = criapi.ContainerState_CONTAINER_EXITED
	s.Reason, s.Message, s.ExitCode, s.FinishedAt = "Completed", "", int32(how.Code), how.At.UnixNano()
	if how.Code != 0 {
		s.Reason = "Error"
	}
	if s.StartedAt == 0 {
		s.StartedAt = s.CreatedAt // when it was is not recorded
	}
}

// writeNote notes an end, in the room that there is for it: with what follows it being blanks, it needs no other.
func writeNote(dir string, e end) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, note), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, bytes.Repeat([]byte{' '}, max(0, noteSize-len(text)))...))
	return errors.Join(err, f.Close())
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
