// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	containerd "github.com/containerd/containerd/v2/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// oneTask is containerd's own API with a task, or none.
type oneTask struct {
	tasks.TasksClient
	there  bool
	deaf   bool // it cannot be killed
	calls  []string
	killed bool
}

func (o *oneTask) called(name string) error {
	o.calls = append(o.calls, name)
	if !o.there {
		return status.Error(codes.NotFound, "no running task found")
	}
	return nil
}

func (o *oneTask) Get(context.Context, *tasks.GetRequest, ...grpc.CallOption) (*tasks.GetResponse, error) {
	return &tasks.GetResponse{}, o.called("get")
}

func (o *oneTask) Kill(_ context.Context, r *tasks.KillRequest, _ ...grpc.CallOption) (*emptypb.Empty, error) {
	if o.deaf {
		return nil, status.Error(codes.Unknown, "the shim does not answer")
	}
	o.killed = r.GetAll() && r.GetSignal() == 9
	return &emptypb.Empty{}, o.called("kill")
}

func (o *oneTask) Wait(context.Context, *tasks.WaitRequest, ...grpc.CallOption) (*tasks.WaitResponse, error) {
	if !o.killed {
		return nil, errors.New("it runs on")
	}
	return &tasks.WaitResponse{}, o.called("wait")
}

func (o *oneTask) Delete(context.Context, *tasks.DeleteTaskRequest, ...grpc.CallOption) (*tasks.DeleteResponse, error) {
	err := o.called("delete")
	o.there = false
	return &tasks.DeleteResponse{}, err
}

// oneContainer is a CRI that has a container c in its sandboxes.
type oneContainer struct{ criapi.RuntimeServiceClient }

func (oneContainer) ListContainers(context.Context, *criapi.ListContainersRequest, ...grpc.CallOption) (*criapi.ListContainersResponse, error) {
	return &criapi.ListContainersResponse{Containers: []*criapi.Container{{Id: "c"}}}, nil
}

// on is an External on a containerd that has this task.
func on(t *testing.T, task *oneTask) *External {
	t.Helper()
	client, err := containerd.New("", containerd.WithServices(containerd.WithTaskClient(task)))
	if err != nil {
		t.Fatal(err)
	}
	e := &External{engine: engine{client: client, cri: oneContainer{}, log: slog.New(slog.DiscardHandler)}}
	e.up.Store(true)
	return e
}

// RS-07, PL-10: containerd 1.6 does not remove a container that it takes for ended while its task is there. The task is ended then, and
// only then.
func TestRemoveForgotten(t *testing.T) {
	refuses := status.Error(codes.Unknown, "cannot delete running task: failed precondition")
	for name, c := range map[string]struct {
		task  oneTask
		says  error // by the CRI, while the task is there
		calls []string
		fails bool
	}{
		"a task that the CRI has forgotten":   {oneTask{there: true}, refuses, []string{"get", "kill", "wait", "delete"}, false},
		"nothing in the way":                  {oneTask{there: true}, nil, nil, false},
		"it is gone":                          {oneTask{there: true}, status.Error(codes.NotFound, "no such container"), nil, true},
		"containerd is away":                  {oneTask{there: true}, status.Error(codes.Unavailable, "connection refused"), nil, true},
		"it cannot be ended":                  {oneTask{there: true, deaf: true}, refuses, []string{"get"}, true},
		"the CRI refuses for another reason":  {oneTask{}, refuses, []string{"get"}, true},
		"the caller does not want it anymore": {oneTask{there: true}, status.Error(codes.Canceled, "context canceled"), nil, true},
	} {
		for _, req := range []any{&criapi.RemoveContainerRequest{ContainerId: "c"}, &criapi.RemovePodSandboxRequest{PodSandboxId: "s"}} {
			t.Run(fmt.Sprintf("%s %T", name, req), func(t *testing.T) {
				task := c.task
				absent := !task.there
				err := on(t, &task).Intercept(t.Context(), "", req, nil, nil,
					func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
						if task.there || absent {
							return c.says
						}
						return nil
					})
				if (err != nil) != c.fails || !slices.Equal(task.calls, c.calls) {
					t.Errorf("%v, after %v; want %v", err, task.calls, c.calls)
				}
				if c.fails && status.Code(errors.Unwrap(err)) != status.Code(c.says) && status.Code(err) != status.Code(c.says) {
					t.Errorf("the CRI's code is lost: %v", err)
				}
			})
		}
	}
}

// RS-07: a container that could not be started, as the CRI says, does not run when that is heard: another one may be started in its place.
func TestStartErrorDoesNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		task   oneTask
		state  criapi.ContainerState
		reason string
		gone   bool
		fails  bool
	}{
		"it runs all the same": {oneTask{there: true}, criapi.ContainerState_CONTAINER_EXITED, "StartError", true, false},
		"it does not":          {oneTask{}, criapi.ContainerState_CONTAINER_EXITED, "StartError", true, false},
		"it cannot be ended":   {oneTask{there: true, deaf: true}, criapi.ContainerState_CONTAINER_EXITED, "StartError", false, true},
		"it has ended":         {oneTask{there: true}, criapi.ContainerState_CONTAINER_EXITED, "Error", false, false},
		"it runs":              {oneTask{there: true}, criapi.ContainerState_CONTAINER_RUNNING, "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			task := c.task
			reply := &criapi.ContainerStatusResponse{}
			err := on(t, &task).Intercept(t.Context(), "", &criapi.ContainerStatusRequest{ContainerId: "c"}, reply, nil,
				func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
					reply.(*criapi.ContainerStatusResponse).Status = &criapi.ContainerStatus{State: c.state, Reason: c.reason}
					return nil
				})
			if (err != nil) != c.fails || task.there == c.gone {
				t.Errorf("%v; its task is there: %v", err, task.there)
			}
		})
	}
}
