// SPDX-License-Identifier: Apache-2.0

package podresources

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"

	"github.com/wherryproject/wherry/internal/node/devices"
	"github.com/wherryproject/wherry/internal/node/numa/bank"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Source is what there is on the node.
type Source interface {
	// Pods are those that have not ended.
	Pods() []*corev1.Pod
	Held(types.UID) map[string][]devices.Share
	Allocatable() []devices.Share
	// CPUs are those that containers of the pod have to themselves, AllocatableCPUs all that could be given so.
	CPUs(types.UID) map[string][]int64
	AllocatableCPUs() []int64
	// Memory is what containers of the pod have of which NUMA nodes, AllocatableMemory what could be given so.
	Memory(types.UID) bank.Held
	AllocatableMemory() bank.Machine
}

// Serve answers at l until ctx ends, and closes it.
func Serve(ctx context.Context, l net.Listener, from Source) error {
	s := grpc.NewServer()
	now := &lister{from: from}
	podresourcesapi.RegisterPodResourcesListerServer(s, now)
	v1alpha1.RegisterPodResourcesListerServer(s, &alphaLister{now: now})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case <-ctx.Done():
		s.Stop()
		<-served
		return nil
	case err := <-served:
		return err
	}
}

type lister struct {
	podresourcesapi.UnimplementedPodResourcesListerServer
	from Source
}

// List lists all pods.
func (l *lister) List(context.Context,
	*podresourcesapi.ListPodResourcesRequest) (*podresourcesapi.ListPodResourcesResponse, error) {
	out := &podresourcesapi.ListPodResourcesResponse{}
	pods := slices.SortedFunc(slices.Values(l.from.Pods()), func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range pods {
		out.PodResources = append(out.PodResources, l.of(p))
	}
	return out, nil
}

// Get answers with one pod.
func (l *lister) Get(_ context.Context,
	in *podresourcesapi.GetPodResourcesRequest) (*podresourcesapi.GetPodResourcesResponse, error) {
	for _, p := range l.from.Pods() {
		if p.Namespace == in.GetPodNamespace() && p.Name == in.GetPodName() {
			return &podresourcesapi.GetPodResourcesResponse{PodResources: l.of(p)}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "pod %s in namespace %s not found on this node", in.GetPodName(),
		in.GetPodNamespace())
}

// GetAllocatableResources answers with what is allocatable.
func (l *lister) GetAllocatableResources(context.Context,
	*podresourcesapi.AllocatableResourcesRequest) (*podresourcesapi.AllocatableResourcesResponse, error) {
	return &podresourcesapi.AllocatableResourcesResponse{Devices: words(l.from.Allocatable()),
		CpuIds: l.from.AllocatableCPUs(), Memory: machineWords(l.from.AllocatableMemory())}, nil
}

// of is one pod's containers: those that run beside one another, as the kubelet does, in the order of the spec.
func (l *lister) of(p *corev1.Pod) *podresourcesapi.PodResources {
	out := &podresourcesapi.PodResources{Name: p.Name, Namespace: p.Namespace}
	held, cpus, memory := l.from.Held(p.UID), l.from.CPUs(p.UID), l.from.Memory(p.UID)
	for c := range podspec.Containers(&p.Spec) {
		if c.Kind == podspec.Ephemeral || c.Kind == podspec.Init {
			continue
		}
		out.Containers = append(out.Containers,
			&podresourcesapi.ContainerResources{Name: c.Container.Name, Devices: words(held[c.Container.Name]),
				CpuIds: cpus[c.Container.Name], Memory: memoryWords(memory[c.Container.Name])})
	}
	return out
}

func words(shares []devices.Share) (out []*podresourcesapi.ContainerDevices) {
	for _, s := range shares {
		d := &podresourcesapi.ContainerDevices{ResourceName: s.Resource, DeviceIds: s.IDs}
		if len(s.NUMA) > 0 {
			d.Topology = &podresourcesapi.TopologyInfo{}
			for _, n := range s.NUMA {
				d.Topology.Nodes = append(d.Topology.Nodes, &podresourcesapi.NUMANode{ID: n})
			}
		}
		out = append(out, d)
	}
	return out
}

// memoryWords is the memory that a container has: each resource once, with the nodes that it may use.
func memoryWords(share bank.Share) (out []*podresourcesapi.ContainerMemory) {
	sum := bank.Amounts{}
	for _, amounts := range share.Of {
		for name, n := range amounts {
			sum[name] += n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		m := &podresourcesapi.ContainerMemory{MemoryType: string(name), Size: uint64(sum[name]),
			Topology: &podresourcesapi.TopologyInfo{}}
		for _, node := range share.Nodes.Nodes() {
			m.Topology.Nodes = append(m.Topology.Nodes, &podresourcesapi.NUMANode{ID: int64(node)})
		}
		out = append(out, m)
	}
	return out
}

// machineWords is the memory that each NUMA node has for pods.
func machineWords(m bank.Machine) (out []*podresourcesapi.ContainerMemory) {
	for _, node := range slices.Sorted(maps.Keys(m)) {
		for _, name := range slices.Sorted(maps.Keys(m[node])) {
			out = append(out, &podresourcesapi.ContainerMemory{MemoryType: string(name),
				Size:     uint64(max(0, m[node][name])),
				Topology: &podresourcesapi.TopologyInfo{Nodes: []*podresourcesapi.NUMANode{{ID: int64(node)}}}})
		}
	}
	return out
}
