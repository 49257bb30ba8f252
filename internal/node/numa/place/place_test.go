// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"

	"github.com/wherryproject/wherry/internal/node/cpus/pin"
	"github.com/wherryproject/wherry/internal/node/devices/grant"
	"github.com/wherryproject/wherry/internal/node/numa"
	"github.com/wherryproject/wherry/internal/node/numa/bank"
)

const gpu = "v.example/gpu"

// machine has so many NUMA nodes, four cores of so many threads in each, 8 bytes of memory in each, and a device at
// each; core 0 is reserved. With two threads the second ones of the cores are numbered after all first ones.
func machine(nodes, threads int, policy numa.Policy) Node {
	n := Node{Rule: numa.Rule{Policy: policy, Nodes: 1<<nodes - 1}, Static: true, Memory: bank.Machine{}}
	for t := range threads {
		for c := range nodes * 4 {
			n.CPUs.Machine = append(n.CPUs.Machine, pin.CPU{ID: t*nodes*4 + c, Core: c, Node: c / 4, Socket: c / 8})
		}
	}
	n.CPUs.Reserved = cpuset.New(0)
	for i := range nodes {
		n.Memory[i] = bank.Amounts{corev1.ResourceMemory: 8}
	}
	return n
}

func gpus(nodes int, taken ...string) map[string]Devices {
	d := Devices{Taken: map[string]bool{}}
	for i := range nodes {
		d.List = append(d.List, grant.Device{ID: fmt.Sprint("gpu", i), Healthy: true, NUMA: []int64{int64(i)}})
	}
	for _, id := range taken {
		d.Taken[id] = true
	}
	return map[string]Devices{gpu: d}
}

// container reads CPUs, memory and GPUs: "2 4 1".
func container(name, asks string) corev1.Container {
	list := corev1.ResourceList{}
	for i, q := range strings.Fields(asks) {
		if name := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, gpu}[i]; q != "0" {
			list[name] = resource.MustParse(q)
		}
	}
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}
}

func pod(asks ...string) *corev1.Pod {
	p := &corev1.Pod{}
	for i, a := range asks {
		p.Spec.Containers = append(p.Spec.Containers, container(fmt.Sprint("c", i), a))
	}
	return p
}

func words(p Placement) string {
	var out []string
	names := map[string]bool{}
	for name := range p.CPUs {
		names[name] = true
	}
	for name := range p.Memory {
		names[name] = true
	}
	for name := range p.Devices {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, fmt.Sprintf("%s: %s on %s %v", name, p.CPUs[name], p.Memory[name].Nodes,
			p.Devices[name][gpu].IDs))
	}
	return strings.Join(out, "; ")
}

// PL-33: where the containers of a pod are placed by each policy and scope, beside what others have; and which pods are
// refused, in which words.
func TestPlace(t *testing.T) {
	scoped := func(n Node) Node { n.Rule.PodScope = true; return n }
	option := func(n Node, o pin.Options) Node { n.CPUs.Options = o; return n }
	full := func(nodes ...int) bank.Taken {
		out := bank.Taken{Of: map[int]bank.Amounts{}}
		for _, n := range nodes {
			out.Of[n] = bank.Amounts{corev1.ResourceMemory: 7}
		}
		return out
	}
	single, restricted, effort := numa.SingleNUMANode, numa.Restricted, numa.BestEffort
	for _, tt := range []struct {
		name string
		node Node
		pod  *corev1.Pod
		f    Facts
		want string // begins with "!": it is refused
	}{
		{"memory alone", machine(2, 1, numa.None), pod("2 4 1"), Facts{Memory: full(0), Devices: gpus(2)},
			"c0:  on 1 []"},
		{"memory alone, too little", machine(2, 1, numa.None), pod("2 4"), Facts{Memory: full(0, 1)},
			"!UnexpectedAdmissionError: Allocate failed due to too little memory: container c0: no NUMA nodes have memory 4 free for it, which is unexpected"},
		{"one node", machine(2, 1, single), pod("2 4"), Facts{}, "c0: 1-2 on 0 []"},
		{"where the memory is", machine(2, 1, single), pod("2 4"), Facts{Memory: full(0)}, "c0: 4-5 on 1 []"},
		{"where the device is", machine(2, 1, single), pod("2 4 1"), Facts{Devices: gpus(2, "gpu0")},
			"c0: 4-5 on 1 [gpu1]"},
		{"where the CPUs are", machine(2, 1, single), pod("4 4 1"), Facts{Devices: gpus(2)}, "c0: 4-7 on 1 [gpu1]"},
		{"apart, one node", machine(2, 1, single), pod("4 4 1"), Facts{Devices: gpus(2, "gpu1")},
			"!TopologyAffinityError: Resources cannot be allocated with Topology locality: container c0: no NUMA node has all that it asks for free: cpu, memory, v.example/gpu"},
		{"apart, restricted", machine(2, 1, restricted), pod("4 4 1"), Facts{Devices: gpus(2, "gpu1")},
			"!TopologyAffinityError: Resources cannot be allocated with Topology locality: container c0: what it asks for is not free on as few NUMA nodes as would hold it: cpu, memory, v.example/gpu"},
		{"apart, best effort", machine(2, 1, effort), pod("4 4 1"), Facts{Devices: gpus(2, "gpu1")},
			"c0: 1-4 on 0 [gpu0]"},
		{"two nodes by need", machine(2, 1, restricted), pod("6 12"), Facts{}, "c0: 1-2,4-7 on 0-1 []"},
		{"two nodes by need, one is asked for", machine(2, 1, single), pod("6 12"), Facts{},
			"!TopologyAffinityError: "},
		{"two nodes of four", machine(4, 1, restricted), pod("8 12 2"), Facts{Devices: gpus(4)},
			"c0: 4-11 on 1-2 [gpu1 gpu2]"},
		{"two nodes of four, of those that are free", machine(4, 1, restricted), pod("8 12 2"),
			Facts{Devices: gpus(4, "gpu1")}, "c0: 8-15 on 2-3 [gpu2 gpu3]"},
		{"threads", machine(2, 2, single), pod("4 4"), Facts{CPUs: cpuset.New(1, 2, 3)}, "c0: 8-11 on 0 []"},
		{"whole cores", option(machine(2, 2, single), pin.Options{FullPCPUsOnly: true}), pod("4 4"),
			Facts{CPUs: cpuset.New(1, 2, 3)}, "c0: 4-5,12-13 on 1 []"},
		{"nodes of one socket", option(machine(4, 1, restricted), pin.Options{AlignBySocket: true}), pod("4 12"),
			Facts{CPUs: cpuset.New(1, 2, 6, 7, 8, 12)}, "c0: 9-11,13 on 2-3 []"},
		{"nodes of one socket, not asked for", machine(4, 1, restricted), pod("4 12"),
			Facts{CPUs: cpuset.New(1, 2, 6, 7, 8, 12)}, "!TopologyAffinityError: "},
		{"nodes of one socket are as good", option(machine(4, 1, restricted), pin.Options{AlignBySocket: true}),
			pod("4 9"), Facts{CPUs: cpuset.New(1, 2, 8, 12)}, "c0: 4-7 on 0-1 []"},
		{"containers apart", machine(2, 1, single), pod("3 4", "3 4"), Facts{}, "c0: 1-3 on 0 []; c1: 4-6 on 1 []"},
		{"a pod together", scoped(machine(2, 1, single)), pod("1 4", "2 4"), Facts{}, "c0: 1 on 0 []; c1: 2-3 on 0 []"},
		{"a pod that is too large", scoped(machine(2, 1, single)), pod("3 4", "3 4"), Facts{},
			"!TopologyAffinityError: Resources cannot be allocated with Topology locality: the pod: "},
		{"containers that share", machine(2, 1, single), pod("500m 4", "1 4"), Facts{}, "c0:  on 0 []; c1: 1 on 0 []"},
		{"nothing of nodes", machine(2, 1, single),
			&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}}, Facts{}, ""},
	} {
		got, err := tt.node.Place(tt.pod, tt.f)
		why := (*Refused)(nil)
		switch {
		case errors.As(err, &why):
			if said := "!" + why.Reason + ": " + why.Message; !strings.HasPrefix(tt.want, "!") ||
				!strings.HasPrefix(said, tt.want) {
				t.Errorf("%s: %s, want %s", tt.name, said, tt.want)
			}
		case words(got) != tt.want:
			t.Errorf("%s: %s, want %s", tt.name, words(got), tt.want)
		}
	}
}

// PL-33: main containers take over what init containers have had, on the nodes where that is.
func TestPlaceAfterInit(t *testing.T) {
	n := machine(2, 1, numa.SingleNUMANode)
	p := pod("4 6 1")
	p.Spec.InitContainers = []corev1.Container{container("i", "2 8 1")}
	got, err := n.Place(p, Facts{CPUs: cpuset.New(1), Devices: gpus(2)})
	if err == nil {
		t.Errorf("the init container is on node 0, where its pod has too few CPUs: %s", words(got))
	}
	got, err = n.Place(p, Facts{CPUs: cpuset.New(1, 2), Devices: gpus(2)})
	if want := "c0: 4-7 on 1 [gpu1]; i: 4-5 on 1 [gpu1]"; err != nil || words(got) != want {
		t.Errorf("%s, %v, want %s", words(got), err, want)
	}
	if got.Charge.Of[1][corev1.ResourceMemory] != 8 || got.Charge.Of[0] != nil {
		t.Errorf("the pod has %+v", got.Charge)
	}
	n.Rule.PodScope = true
	got, err = n.Place(p, Facts{CPUs: cpuset.New(1), Devices: gpus(2)})
	if want := "c0: 4-7 on 1 [gpu1]; i: 4-5 on 1 [gpu1]"; err != nil || words(got) != want {
		t.Errorf("the pod together: %s, %v, want %s", words(got), err, want)
	}
}

// PL-33: devices whose plug-in says nothing of nodes are left to the container's start, and so are too few of them.
func TestPlaceLeaves(t *testing.T) {
	n := machine(2, 1, numa.BestEffort)
	f := Facts{Devices: gpus(2, "gpu0", "gpu1")}
	got, err := n.Place(pod("1 4 1"), f)
	if err != nil || words(got) != "c0: 1 on 0 []" {
		t.Errorf("too few: %s, %v", words(got), err)
	}
	f.Devices[gpu] = Devices{List: []grant.Device{{ID: "x", Healthy: true}}}
	n.Rule.Policy = numa.SingleNUMANode
	if got, err = n.Place(pod("1 4 1"), f); err != nil || words(got) != "c0: 1 on 0 []" {
		t.Errorf("of no node: %s, %v", words(got), err)
	}
}
