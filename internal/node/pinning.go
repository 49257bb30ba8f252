// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/cpuset"

	"github.com/wherryproject/wherry/internal/controllers/scheduler/fit"
	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/cpus"
	"github.com/wherryproject/wherry/internal/node/cpus/pin"
	"github.com/wherryproject/wherry/internal/podspec"
)

// CPUManager says how CPUs are given out.
type CPUManager struct {
	Machine  pin.Machine
	Static   bool // containers of guaranteed pods that ask for whole CPUs have them to themselves
	Options  pin.Options
	Reserved cpuset.CPUSet // kept for the system: not allocatable, and of nobody alone
}

// newCPUs makes what knows who has which CPUs.
func (a *Agent) newCPUs() (*cpus.Manager, error) {
	c := a.cfg.CPUs
	return cpus.New(cpus.Config{Policy: pin.Policy{Machine: c.Machine, Reserved: c.Reserved, Options: c.Options},
		Off: !c.Static, PodsFolder: a.cfg.podsFolder(), Runtime: pinner{a.cfg.CRI},
		Retry: func(uid types.UID) { a.workers.Retry(uid) }, Logger: a.log})
}

// unfit refuses pods that this node could never give what they ask for, or not near together. One that it lets in has
// been given its place.
func (a *Agent) unfit(pod *corev1.Pod) *fit.Misfit {
	if a.cfg.CPUs.Static {
		if why := a.cpus.Policy().Misaligned(pod); why != "" {
			return &fit.Misfit{Reason: "SMTAlignmentError", Message: why}
		}
	}
	return a.place(pod)
}

// fixedCPUs says why the CPUs of a pod cannot be changed in place, in the kubelet's words.
func (a *Agent) fixedCPUs(now, asks *corev1.Pod) string {
	if !a.cfg.CPUs.Static || podspec.QOSClass(now) != corev1.PodQOSGuaranteed {
		return ""
	}
	if differ(now, asks, func(*corev1.Container) bool { return true }, corev1.ResourceCPU) {
		return "Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy"
	}
	return ""
}

// pinner is the runtime as what gives out CPUs sees it.
type pinner struct{ client *cri.Client }

// Running is part of [cpus.Runtime].
func (p pinner) Running(ctx context.Context) ([]cpus.Running, error) {
	list, err := p.client.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{
			State: runtimeapi.ContainerState_CONTAINER_RUNNING}}})
	if err != nil {
		return nil, err
	}
	var out []cpus.Running
	for _, c := range list.GetContainers() {
		out = append(out, cpus.Running{Pod: types.UID(c.GetLabels()[cri.LabelPodUID]),
			Container: c.GetLabels()[cri.LabelContainerName], ID: c.GetId()})
	}
	return out, nil
}

// SetCPUs is part of [cpus.Runtime].
func (p pinner) SetCPUs(ctx context.Context, id, list string) error {
	_, err := p.client.Runtime.UpdateContainerResources(ctx, &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: id, Linux: &runtimeapi.LinuxContainerResources{CpusetCpus: list}})
	if err == nil || cri.NotFound(err) {
		return nil
	}
	status, asked := p.client.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if cri.NotFound(asked) || status.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
		return nil
	}
	return fmt.Errorf("moving container %s to CPUs %s: %s", id, list, cri.Message(err))
}

// numbers are CPUs as podresources has them.
func numbers(set cpuset.CPUSet) (out []int64) {
	for _, id := range set.List() {
		out = append(out, int64(id))
	}
	return out
}

// CPUs is part of [podresources.Source].
func (d deviceHolders) CPUs(uid types.UID) map[string][]int64 {
	out := map[string][]int64{}
	for container, set := range d.a.cpus.Of(uid) {
		out[container] = numbers(set)
	}
	return out
}

// AllocatableCPUs is part of [podresources.Source].
func (d deviceHolders) AllocatableCPUs() []int64 {
	if d.a.cpus.Off() {
		return nil
	}
	p := d.a.cpus.Policy()
	return numbers(p.Machine.All().Difference(p.Reserved))
}
