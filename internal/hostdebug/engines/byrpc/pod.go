// SPDX-License-Identifier: Apache-2.0

package byrpc

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
)

// PodName is a pod of Kubernetes.
type PodName struct{ Namespace, Name, UID string }

// NotHere is the error for a pod that this machine's runtime does not have.
type NotHere struct {
	Pod   PodName
	Other string // the uid of another pod of that name that it has
}

func (e *NotHere) Error() string {
	if e.Other != "" {
		return fmt.Sprintf("pod %s/%s on this node is another than the one that was meant (uid %s, not %s)",
			e.Pod.Namespace, e.Pod.Name, e.Other, e.Pod.UID)
	}
	return fmt.Sprintf("pod %s/%s has no containers on this node", e.Pod.Namespace, e.Pod.Name)
}

// Pod is what a runtime has of a pod.
type Pod struct {
	Sandbox string // ID of its newest one
	Keeper  int    // the process of that; 0: it does not run, or is not reported
	// Containers are all that there are, by name, the newest of a name first.
	Containers []PodContainer
}

// PodContainer is one of a pod.
type PodContainer struct {
	Name     string
	Attempt  uint32
	ImageRef string // what the runtime calls its image: a digest or an ID

	*engines.Container       // nil: it is not known
	Err                error // why not, or why not its files
}

// atOnce bounds how many requests a runtime gets at the same time.
const atOnce = 4

// Pod asks for a pod. The error is a [NotHere] where it is not the runtime's, with this very uid.
func (c *CRI) Pod(ctx context.Context, name PodName) (*Pod, error) {
	own := map[string]string{cri.LabelPodNamespace: name.Namespace, cri.LabelPodName: name.Name}
	var sandboxes *runtimeapi.ListPodSandboxResponse
	var list *runtimeapi.ListContainersResponse
	lists, asking := errgroup.WithContext(ctx)
	lists.Go(func() (err error) {
		sandboxes, err = c.client.Runtime.ListPodSandbox(asking,
			&runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: own}})
		return err
	})
	lists.Go(func() (err error) {
		list, err = c.client.Runtime.ListContainers(asking,
			&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: own}})
		return err
	})
	if err := lists.Wait(); err != nil {
		return nil, fmt.Errorf("socket %s: %s", c.socket, cri.Message(err))
	}
	sandbox, err := sandboxOf(sandboxes.GetItems(), name)
	if err != nil {
		return nil, err
	}
	all := ofPod(list.GetContainers(), name)
	p := &Pod{Sandbox: sandbox.GetId(), Containers: make([]PodContainer, len(all))}
	var details errgroup.Group
	details.SetLimit(atOnce)
	details.Go(func() (err error) {
		p.Keeper, err = c.keeper(ctx, sandbox)
		return err
	})
	for i, one := range all {
		details.Go(func() error {
			p.Containers[i] = c.ofPod(ctx, one)
			return nil
		})
	}
	return p, details.Wait()
}

// ofPod is what is known of one of a pod's containers.
func (c *CRI) ofPod(ctx context.Context, one *runtimeapi.Container) PodContainer {
	pc := PodContainer{Name: one.GetMetadata().GetName(), Attempt: one.GetMetadata().GetAttempt()}
	got, err := c.client.Runtime.ContainerStatus(ctx,
		&runtimeapi.ContainerStatusRequest{ContainerId: one.GetId(), Verbose: true})
	if err != nil {
		pc.Err = fmt.Errorf("socket %s: %s", c.socket, cri.Message(err))
		return pc
	}
	pc.ImageRef = got.GetStatus().GetImageRef()
	pc.Container, pc.Err = c.describe(ctx, one, got)
	return pc
}

// keeper is the process of a ready sandbox; 0 where it is not ready, or the runtime does not report it.
func (c *CRI) keeper(ctx context.Context, sandbox *runtimeapi.PodSandbox) (int, error) {
	if sandbox.GetState() != runtimeapi.PodSandboxState_SANDBOX_READY {
		return 0, nil
	}
	got, err := c.client.Runtime.PodSandboxStatus(ctx,
		&runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox.GetId(), Verbose: true})
	if err != nil {
		return 0, fmt.Errorf("socket %s: %s", c.socket, cri.Message(err))
	}
	var info struct {
		PID int `json:"pid"`
	}
	if text := got.GetInfo()["info"]; text != "" {
		if err := json.Unmarshal([]byte(text), &info); err != nil {
			return 0, fmt.Errorf("what the runtime tells of the pod cannot be read: %w", err)
		}
	}
	return max(info.PID, 0), nil
}

// isOf reports whether labels are those of a pod's sandbox or container, by name alone. What Wherry makes for a command
// beside a pod is none.
func isOf(labels map[string]string, name PodName) bool {
	return labels[cri.LabelPodNamespace] == name.Namespace && labels[cri.LabelPodName] == name.Name &&
		!cri.IsExec(labels)
}

// sandboxOf is a pod's newest sandbox, one that is ready before others.
func sandboxOf(sandboxes []*runtimeapi.PodSandbox, name PodName) (*runtimeapi.PodSandbox, error) {
	var best *runtimeapi.PodSandbox
	absent := &NotHere{Pod: name}
	for _, b := range sandboxes {
		labels := b.GetLabels()
		switch {
		case !isOf(labels, name):
		case name.UID == "" || labels[cri.LabelPodUID] != name.UID:
			absent.Other = labels[cri.LabelPodUID]
		case best == nil || b.GetState() < best.GetState() || // SANDBOX_READY is the least
			b.GetState() == best.GetState() && b.GetCreatedAt() > best.GetCreatedAt():
			best = b
		}
	}
	if best == nil {
		return nil, absent
	}
	return best, nil
}

// ofPod are a pod's containers by name, the newest of a name first.
func ofPod(list []*runtimeapi.Container, name PodName) []*runtimeapi.Container {
	var own []*runtimeapi.Container
	for _, c := range list {
		if isOf(c.GetLabels(), name) && c.GetLabels()[cri.LabelPodUID] == name.UID {
			own = append(own, c)
		}
	}
	slices.SortStableFunc(own, func(a, b *runtimeapi.Container) int {
		return cmp.Or(cmp.Compare(a.GetMetadata().GetName(), b.GetMetadata().GetName()),
			cmp.Compare(b.GetMetadata().GetAttempt(), a.GetMetadata().GetAttempt()),
			cmp.Compare(b.GetCreatedAt(), a.GetCreatedAt()))
	})
	return own
}

// Still returns an error unless a pod's sandbox and containers still have the processes that they were found with.
func (c *CRI) Still(ctx context.Context, p *Pod, name PodName) error {
	now, err := c.Pod(ctx, name)
	if err != nil {
		return err
	}
	if now.Sandbox != p.Sandbox || now.Keeper != p.Keeper {
		return fmt.Errorf("pod %s/%s has just been started again: try again", name.Namespace, name.Name)
	}
	pids := map[string]int{}
	for _, one := range now.Containers {
		if one.Container != nil {
			pids[one.ID] = one.PID
		}
	}
	for _, one := range p.Containers {
		if one.Container != nil && one.Alive() && pids[one.ID] != one.PID {
			return fmt.Errorf("container %s has just ended: try again", one.Name)
		}
	}
	return nil
}
