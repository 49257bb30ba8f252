// SPDX-License-Identifier: Apache-2.0

package podresources

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/wherryproject/wherry/internal/node/devices"
	"github.com/wherryproject/wherry/internal/node/kubeletsocket"
	"github.com/wherryproject/wherry/internal/node/numa/bank"
)

type source struct{}

func (source) Pods() []*corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	return []*corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "plain", UID: "2"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "gpu", UID: "1"}, Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init"}, {Name: "side", RestartPolicy: &always}},
			Containers:     []corev1.Container{{Name: "m"}}}},
	}
}

func (source) Held(uid types.UID) map[string][]devices.Share {
	if uid != "1" {
		return nil
	}
	return map[string][]devices.Share{"m": {{Resource: "v.example/x", IDs: []string{"0"}, NUMA: []int64{1}}},
		"init": {{Resource: "v.example/x", IDs: []string{"0"}}}}
}

func (source) CPUs(uid types.UID) map[string][]int64 {
	if uid != "1" {
		return nil
	}
	return map[string][]int64{"m": {2, 3}}
}

func (source) Memory(uid types.UID) bank.Held {
	if uid != "1" {
		return nil
	}
	return bank.Held{"m": {Nodes: 3, Of: map[int]bank.Amounts{0: {"memory": 5, "hugepages-2Mi": 2}, 1: {"memory": 3}}}}
}

func (source) AllocatableMemory() bank.Machine {
	return bank.Machine{0: {"memory": 6, "hugepages-2Mi": 2}, 1: {"memory": 6}}
}

func (source) AllocatableCPUs() []int64 { return []int64{1, 2, 3} }

func (source) Allocatable() []devices.Share {
	return []devices.Share{{Resource: "v.example/x", IDs: []string{"0", "1"}}}
}

// serve serves the source at a socket, and connects to it. stop ends the server and says how it ended.
func serve(t *testing.T) (conn *grpc.ClientConn, stop func() error) {
	t.Helper()
	folder := t.TempDir()
	l, err := kubeletsocket.Listen(folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, source{}) }()
	conn, err = grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return kubeletsocket.Dial(ctx, filepath.Join(folder, kubeletsocket.Name))
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); cancel() })
	return conn, func() error { cancel(); return <-served }
}

// PL-34: who has what, as the kubelet's API words it: sidecars and mains, in order.
func TestAnswers(t *testing.T) {
	conn, stop := serve(t)
	ctx := t.Context()
	client := podresourcesapi.NewPodResourcesListerClient(conn)
	list, err := client.List(ctx, &podresourcesapi.ListPodResourcesRequest{})
	if err != nil || len(list.PodResources) != 2 || list.PodResources[0].Name != "gpu" {
		t.Fatalf("%v, %v", list, err)
	}
	one, err := client.Get(ctx, &podresourcesapi.GetPodResourcesRequest{PodNamespace: "a", PodName: "gpu"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*podresourcesapi.PodResources{list.PodResources[0], one.GetPodResources()} {
		c := p.GetContainers()
		if len(c) != 2 || c[0].Name != "side" || len(c[0].Devices) > 0 || len(c[0].CpuIds) > 0 ||
			len(c[1].CpuIds) != 2 || c[1].Name != "m" || len(c[1].Devices) != 1 ||
			c[1].Devices[0].ResourceName != "v.example/x" || c[1].Devices[0].DeviceIds[0] != "0" ||
			c[1].Devices[0].Topology.Nodes[0].ID != 1 {
			t.Errorf("containers %v", c)
		}
		if m := c[1].Memory; len(c[0].Memory) > 0 || len(m) != 2 || m[0].MemoryType != "hugepages-2Mi" ||
			m[0].Size != 2 ||
			m[1].Size != 8 || len(m[1].Topology.Nodes) != 2 {
			t.Errorf("PL-33 memory %v", m)
		}
	}
	if _, err := client.Get(ctx, &podresourcesapi.GetPodResourcesRequest{PodNamespace: "b",
		PodName: "gpu"}); status.Code(err) != codes.NotFound {
		t.Errorf("a pod that is not there: %v", err)
	}
	all, err := client.GetAllocatableResources(ctx, &podresourcesapi.AllocatableResourcesRequest{})
	if err != nil || len(all.Devices) != 1 || len(all.Devices[0].DeviceIds) != 2 || all.Devices[0].Topology != nil ||
		len(all.CpuIds) != 3 || len(all.Memory) != 3 || all.Memory[2].Size != 6 ||
		all.Memory[2].Topology.Nodes[0].ID != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
