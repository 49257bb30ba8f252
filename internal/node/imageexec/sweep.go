// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// Sweep makes the folder ready and takes away every session that a former process left: nobody is at their other ends
// any more (IX-05). It is to be called before the first Prepare.
func (e *Execs) Sweep(ctx context.Context) error {
	if err := makeBase(e.Folder); err != nil {
		return err
	}
	errs := []error{removeLabelled(ctx, e.Ops.CRI, map[string]string{cri.LabelContainerType: cri.TypeExec})}
	entries, err := os.ReadDir(e.Folder)
	errs = append(errs, err)
	for _, f := range entries {
		if uuid.Validate(f.Name()) != nil {
			continue // not ours
		}
		if e.Ops.Cgroups != nil {
			errs = append(errs, e.Ops.Cgroups.RemovePod(types.UID(f.Name())))
		}
		errs = append(errs, removeTree(filepath.Join(e.Folder, f.Name())))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing what is left of image execs: %w", err)
	}
	return nil
}

// removeLabelled removes the containers and sandboxes with these labels, running or not.
func removeLabelled(ctx context.Context, c *cri.Client, labels map[string]string) error {
	containers,
		err := c.Runtime.ListContainers(ctx,
		&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: labels}})
	errs := []error{err}
	for _, x := range containers.GetContainers() {
		errs = append(errs, removeContainer(ctx, c, x.GetId()))
	}
	sandboxes,
		err := c.Runtime.ListPodSandbox(ctx,
		&runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: labels}})
	errs = append(errs, err)
	for _, x := range sandboxes.GetItems() {
		if _,
			err := c.Runtime.StopPodSandbox(ctx,
			&runtimeapi.StopPodSandboxRequest{PodSandboxId: x.GetId()}); err != nil && !cri.NotFound(err) {
			errs = append(errs, fmt.Errorf("stopping sandbox %s: %s", x.GetId(), cri.Message(err)))
		}
		if _,
			err := c.Runtime.RemovePodSandbox(ctx,
			&runtimeapi.RemovePodSandboxRequest{PodSandboxId: x.GetId()}); err != nil && !cri.NotFound(err) {
			errs = append(errs, fmt.Errorf("removing sandbox %s: %s", x.GetId(), cri.Message(err)))
		}
	}
	return errors.Join(errs...)
}

// removeContainer removes a container; one that runs is killed.
func removeContainer(ctx context.Context, c *cri.Client, id string) error {
	_, err := c.Runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	if err != nil && !cri.NotFound(err) {
		// One whose process has just ended, containerd neither kills nor removes before it has noted that.
		if _, err = awaitEnd(ctx, c, id, 0); err == nil {
			_, err = c.Runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
		}
	}
	if err != nil && !cri.NotFound(err) {
		return fmt.Errorf("removing container %s: %s", id, cri.Message(err))
	}
	return nil
}

// partTime is how long a command that has lost its client may take to end by itself.
const partTime = 500 * time.Millisecond

// partWith waits for a command to end that has lost its client, and its input with it: one that copies takes away then
// what it has not finished, and could not if it were killed at once. There is no event that every runtime has in time.
func (e *Execs) partWith(ctx context.Context, container string) {
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	for {
		st, err := e.Ops.CRI.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: container})
		if err != nil || st.GetStatus().GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			return
		}
		select {
		case <-time.After(notePoll):
		case <-ctx.Done():
			return
		}
	}
}

// notePoll is how often a runtime is asked whether it has noted a container's end.
const notePoll = 10 * time.Millisecond

// awaitEnd stops a container, which has the grace for it, and waits until the runtime has noted its end. Stopping one
// whose process has just ended returns at once, or fails, also before that is noted, and not every runtime has an event
// for it.
func awaitEnd(ctx context.Context, c *cri.Client, id string, grace time.Duration) (*runtimeapi.ContainerStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, grace+cleanTime)
	defer cancel()
	for {
		_, failed := c.Runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id,
			Timeout: int64(grace.Seconds())})
		st, err := c.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err != nil || st.GetStatus().GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			return st.GetStatus(), err
		}
		select {
		case <-time.After(notePoll):
		case <-ctx.Done():
			return nil, errors.Join(failed, ctx.Err())
		}
	}
}
