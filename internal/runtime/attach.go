// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"

	eventsapi "github.com/containerd/containerd/api/events"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/events"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"google.golang.org/protobuf/proto"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/runtime/tap"
)

// AttachOptions are the streams of a client of Attach.
type AttachOptions = tap.Options

// KeepsOutput says whether Attach can be asked for a container: whether its output is kept, or will be once it is
// started. An error is the CRI's, of a container that does not exist.
func (e *engine) KeepsOutput(ctx context.Context, containerID string) (bool, error) {
	if e.taps.Kept(containerID) {
		return true, nil
	}
	res, err := e.cri.ContainerStatus(ctx, &criapi.ContainerStatusRequest{ContainerId: containerID})
	if err != nil {
		return false, err
	}
	if res.GetStatus().GetState() != criapi.ContainerState_CONTAINER_CREATED {
		return e.taps.Kept(containerID), nil // it may have been started just now; or a version did that which kept none
	}
	return e.keeps(ctx, containerID)
}

// LogsOutput says whether a container's log is written by this runtime: then Attach shows a client the log first
// (AttachOptions.Past), and what follows it to the byte.
func (e *engine) LogsOutput(containerID string) bool { return e.taps.Passes(containerID) }

// Attach gives a client the output of a container from its first byte, once and in order (EC-16), as far as it is kept,
// and hands the client's input on (EC-15). The container may be created, running or exited. It returns nil when the
// process has ended and all its output was written, ctx.Err() when ctx is done, which ends nothing of the container's.
//
// It is for containers of which KeepsOutput or LogsOutput says true.
func (e *engine) Attach(ctx context.Context, containerID string, o AttachOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	removed, err := e.awaitRemoval(ctx, containerID)
	if err != nil {
		return err
	}
	return e.taps.Attach(ctx, containerID, o, &shim{ctx, e.client, containerID}, removed)
}

// awaitRemoval returns what is closed when a container is removed, or is not there any more.
func (e *engine) awaitRemoval(ctx context.Context, id string) (<-chan struct{}, error) {
	subscribe := func() (<-chan *events.Envelope, <-chan error) {
		return e.client.EventService().Subscribe(ctx, `topic=="/containers/delete"`)
	}
	deleted, errs := subscribe()
	if kept, err := e.KeepsOutput(ctx, id); err != nil {
		return nil, err
	} else if !kept && !e.LogsOutput(id) {
		return nil, tap.ErrNotKept
	}
	removed := make(chan struct{})
	go func() {
		for {
			select {
			case env := <-deleted:
				which := &eventsapi.ContainerDelete{}
				if env == nil || proto.Unmarshal(env.Event.GetValue(), which) != nil || which.ID != id {
					continue
				}
			case <-errs:
				// ctx is done, or containerd ends; one behind a socket comes back, and has no event for when.
				if !again(ctx) {
					return
				}
				deleted, errs = subscribe()
				if _, err := e.KeepsOutput(ctx, id); !cri.NotFound(err) {
					continue
				}
			}
			close(removed)
			return
		}
	}()
	return removed, nil
}

// shim speaks to a container's shim.
type shim struct {
	ctx    context.Context
	client *containerd.Client
	id     string
}

// CloseStdin implements tap.Shim. It is asked for when the client has gone, too.
func (s *shim) CloseStdin() error {
	ctx, cancel := context.WithTimeout(namespaces.WithNamespace(context.WithoutCancel(s.ctx), Namespace), stopLimit)
	defer cancel()
	_, err := s.client.TaskService().CloseIO(ctx, &tasks.CloseIORequest{ContainerID: s.id, Stdin: true})
	return err
}

// Resize implements tap.Shim.
func (s *shim) Resize(size remotecommand.TerminalSize) error {
	_, err := s.client.TaskService().ResizePty(namespaces.WithNamespace(s.ctx, Namespace), &tasks.ResizePtyRequest{
		ContainerID: s.id, Width: uint32(size.Width), Height: uint32(size.Height),
	})
	return err
}
