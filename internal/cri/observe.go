// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// lateReason is how long after a container's end its status is still asked for: runtimes add the reason OOMKilled late.
const lateReason = 2 * time.Second

// Observed is what the runtime shows of one pod, newest first. It shares its values with nobody but the client's cache:
// read, do not change.
type Observed struct {
	Sandboxes  []*runtimeapi.PodSandboxStatus
	Containers []ObservedContainer
}

// ObservedContainer is a container's status with the sandbox it is in, which the status lacks.
type ObservedContainer struct {
	SandboxID string
	Status    *runtimeapi.ContainerStatus
}

// Observe asks the runtime for all sandboxes and containers of a pod (by the pod UID label) and their statuses. What is
// removed while it asks is left out, and so are image execs ([TypeExec]). Cost: two lists, and one status call for each
// sandbox and each container that is not known to have ended.
func (c *Client) Observe(ctx context.Context, podUID string) (Observed, error) {
	if podUID == "" {
		return Observed{}, fmt.Errorf("observing a pod needs its UID")
	}
	byPod := map[string]string{LabelPodUID: podUID}
	// Containers first: a sandbox is made before its containers, so none is seen whose sandbox is not.
	containers,
		err := c.Runtime.ListContainers(ctx,
		&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: byPod}})
	if err != nil {
		return Observed{}, fmt.Errorf("listing the containers of pod %s: %w", podUID, err)
	}
	sandboxes,
		err := c.Runtime.ListPodSandbox(ctx,
		&runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: byPod}})
	if err != nil {
		return Observed{}, fmt.Errorf("listing the sandboxes of pod %s: %w", podUID, err)
	}
	var seen Observed
	if seen.Sandboxes, err = c.sandboxStatuses(ctx, sandboxes.GetItems()); err != nil {
		return Observed{}, err
	}
	if seen.Containers, err = c.containerStatuses(ctx, podUID, containers.GetContainers()); err != nil {
		return Observed{}, err
	}
	return seen, nil
}

func (c *Client) sandboxStatuses(ctx context.Context,
	items []*runtimeapi.PodSandbox) ([]*runtimeapi.PodSandboxStatus, error) {
	out := make([]*runtimeapi.PodSandboxStatus, 0, len(items))
	for _, s := range items {
		if IsExec(s.GetLabels()) {
			continue
		}
		r, err := c.Runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: s.GetId()})
		if NotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("status of sandbox %s: %w", s.GetId(), err)
		}
		out = append(out, r.GetStatus())
	}
	slices.SortFunc(out, func(a, b *runtimeapi.PodSandboxStatus) int {
		return cmp.Or(cmp.Compare(b.GetMetadata().GetAttempt(), a.GetMetadata().GetAttempt()),
			cmp.Compare(b.GetCreatedAt(), a.GetCreatedAt()), cmp.Compare(a.GetId(), b.GetId()))
	})
	return out, nil
}

func (c *Client) containerStatuses(ctx context.Context, podUID string,
	items []*runtimeapi.Container) ([]ObservedContainer, error) {
	known := c.ended.of(podUID)
	keep := map[string]*runtimeapi.ContainerStatus{}
	out := make([]ObservedContainer, 0, len(items))
	for _, item := range items {
		if IsExec(item.GetLabels()) {
			continue
		}
		st := known[item.GetId()]
		if st == nil {
			r, err := c.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: item.GetId()})
			if NotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("status of container %s (%s): %w", item.GetMetadata().GetName(), item.GetId(),
					err)
			}
			st = r.GetStatus()
		}
		if endedForGood(st, time.Now()) {
			keep[item.GetId()] = st
		}
		out = append(out, ObservedContainer{SandboxID: item.GetPodSandboxId(), Status: st})
	}
	c.ended.set(podUID, keep)
	slices.SortFunc(out, func(a, b ObservedContainer) int {
		return cmp.Or(cmp.Compare(b.Status.GetCreatedAt(), a.Status.GetCreatedAt()),
			cmp.Compare(b.Status.GetMetadata().GetAttempt(), a.Status.GetMetadata().GetAttempt()),
			cmp.Compare(a.Status.GetId(), b.Status.GetId()))
	})
	return out, nil
}

// endedForGood says that this status will not change any more.
func endedForGood(st *runtimeapi.ContainerStatus, now time.Time) bool {
	return st.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED && st.GetFinishedAt() > 0 &&
		now.Sub(time.Unix(0, st.GetFinishedAt())) > lateReason
}

// PodRef names a pod the runtime holds something of, and whether any of it runs or is ready.
type PodRef struct {
	UID, Namespace, Name string
	Running              bool
}

// Pods lists every pod that has a sandbox or a container in the runtime, sorted by UID: at its start the agent finds
// the ones that the API no longer knows. Sandboxes and containers without the pod UID label are not ours and left out,
// and so are image execs.
func (c *Client) Pods(ctx context.Context) ([]PodRef, error) {
	containers, err := c.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("listing all containers: %w", err)
	}
	sandboxes, err := c.Runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("listing all sandboxes: %w", err)
	}
	pods := map[string]PodRef{}
	note := func(labels map[string]string, running bool) {
		uid := labels[LabelPodUID]
		if uid == "" || IsExec(labels) {
			return
		}
		p := pods[uid]
		pods[uid] = PodRef{UID: uid, Namespace: labels[LabelPodNamespace], Name: labels[LabelPodName],
			Running: p.Running || running}
	}
	for _, s := range sandboxes.GetItems() {
		note(s.GetLabels(), s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY)
	}
	for _, ctr := range containers.GetContainers() {
		note(ctr.GetLabels(), ctr.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING)
	}
	out := make([]PodRef, 0, len(pods))
	for _, p := range pods {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b PodRef) int { return cmp.Compare(a.UID, b.UID) })
	return out, nil
}

// endedCache remembers the statuses of containers that have ended, by pod, for as long as the runtime lists them.
type endedCache struct {
	mu   sync.Mutex
	pods map[string]map[string]*runtimeapi.ContainerStatus
}

func newEndedCache() *endedCache {
	return &endedCache{pods: map[string]map[string]*runtimeapi.ContainerStatus{}}
}

func (e *endedCache) of(podUID string) map[string]*runtimeapi.ContainerStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pods[podUID] // never changed in place, so safe to read outside the lock
}

func (e *endedCache) set(podUID string, statuses map[string]*runtimeapi.ContainerStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(statuses) == 0 {
		delete(e.pods, podUID)
		return
	}
	e.pods[podUID] = statuses
}
