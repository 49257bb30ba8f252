// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"golang.org/x/sys/unix"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// startFailed is containerd's word for a container that could not be started.
const startFailed = "StartError"

// endTime bounds how long the end of a process that the CRI knows nothing of is waited for.
const endTime = 10 * time.Second

// remove removes a container. containerd may say that one could not be started although it runs, or although it has a
// task, which then is nobody's: 1.6, asked to start it by somebody who is killed meanwhile; 2.x, when the call is given
// up just when its shim has made it. Such a container it does not remove either, ever. So what there is of one that
// cannot be removed is ended.
func (e *engine) remove(ctx context.Context, id string, call func() error) error {
	return e.removeAfter(ctx, call, func() ([]string, error) { return []string{id}, nil })
}

// removeSandbox is remove, for all containers that are in a sandbox: the CRI removes them with it.
func (e *engine) removeSandbox(ctx context.Context, id string, call func() error) error {
	return e.removeAfter(ctx, call, func() ([]string, error) {
		list,
			err := e.cri.ListContainers(ctx,
			&criapi.ListContainersRequest{Filter: &criapi.ContainerFilter{PodSandboxId: id}})
		var ids []string
		for _, c := range list.GetContainers() {
			ids = append(ids, c.GetId())
		}
		return ids, err
	})
}

// removeAfter makes a call that removes containers; if it fails, it ends what runs in them, whatever the CRI knows of
// that, and makes it once more.
func (e *engine) removeAfter(ctx context.Context, call func() error, which func() ([]string, error)) error {
	err := call()
	if err == nil || cri.NotFound(err) || cri.Unavailable(err) || cri.Cancelled(err) {
		return err
	}
	ids, failed := which()
	some := false
	for _, id := range ids {
		ended, endErr := e.endRest(ctx, id)
		failed = errors.Join(failed, endErr)
		if ended && endErr == nil {
			some = true
			e.log.Info("ended a container's process of which the container runtime's CRI knew nothing", "container", id,
				"why", cri.Message(err))
		}
	}
	switch {
	case failed != nil:
		return fmt.Errorf("%w; its processes, if it has any, could not be ended through containerd's own API: %s", err,
			cri.Message(failed))
	case !some:
		return err
	}
	return call()
}

// status asks for a container's status. One that could not be started does not run when that is reported, so that it is
// safe to start another in its place (RS-07).
func (e *engine) status(ctx context.Context, id string, reply *criapi.ContainerStatusResponse,
	call func() error) error {
	if err := call(); err != nil {
		return err
	}
	s := reply.GetStatus()
	if s.GetState() != criapi.ContainerState_CONTAINER_EXITED || s.GetReason() != startFailed {
		return nil
	}
	ended, err := e.endRest(ctx, id)
	if err != nil {
		return fmt.Errorf("container %s could not be started, but whether it runs is not known: %s", id,
			cri.Message(err))
	}
	if ended {
		e.log.Info("ended a container's process: the container runtime's CRI says that it could not be started",
			"container", id)
	}
	return nil
}

// endRest kills what runs in a container and removes its task, and reports whether there was one. What the CRI knows
// does not matter.
func (e *engine) endRest(ctx context.Context, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(namespaces.WithNamespace(ctx, Namespace), endTime)
	defer cancel()
	return endTask(ctx, e.client.TaskService(), id)
}

// endTask is endRest, for a context with containerd's namespace.
func endTask(ctx context.Context, c tasks.TasksClient, id string) (bool, error) {
	if _, err := c.Get(ctx, &tasks.GetRequest{ContainerID: id}); cri.NotFound(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	_, err := c.Kill(ctx, &tasks.KillRequest{ContainerID: id, Signal: uint32(unix.SIGKILL), All: true})
	if err != nil && !cri.NotFound(err) { // its process has ended: the task is there still
		return true, err
	}
	if _, err := c.Wait(ctx, &tasks.WaitRequest{ContainerID: id}); err != nil && !cri.NotFound(err) {
		return true, err
	}
	if _, err := c.Delete(ctx, &tasks.DeleteTaskRequest{ContainerID: id}); err != nil && !cri.NotFound(err) {
		return true, err
	}
	return true, nil
}
