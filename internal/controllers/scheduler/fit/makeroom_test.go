// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sized makes a pod on the node "here": its CPUs, and as much memory in GiB if memory is set. Its class follows: limits make it guaranteed.
func sized(name string, priority int32, cpu, memory string, guaranteed bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	p.Spec.NodeName, p.Spec.Priority = "here", &priority
	c := corev1.Container{Name: "c"}
	if cpu != "" {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		if memory != "" {
			c.Resources.Requests[corev1.ResourceMemory] = resource.MustParse(memory)
		}
	}
	if guaranteed {
		c.Resources.Limits = c.Resources.Requests
	}
	p.Spec.Containers = []corev1.Container{c}
	return p
}

// PL-20: who goes for a critical pod.
func TestMakeRoom(t *testing.T) {
	const system = 2_000_000_000
	burstable := func(name, cpu string) *corev1.Pod { return sized(name, 0, cpu, "", false) }
	agent := func(cpu, memory string) *corev1.Pod { return sized("agent", system, cpu, memory, false) }
	for name, c := range map[string]struct {
		there []*corev1.Pod // on a node with 4 CPUs, 4 GiB, room for 6 pods
		comes *corev1.Pod
		want  string // "-": there is no way
	}{
		"there is room":              {[]*corev1.Pod{burstable("a", "1")}, agent("1", ""), ""},
		"the one that is enough":     {[]*corev1.Pod{burstable("a", "0.5"), burstable("b", "1.5"), burstable("c", "2")}, agent("1", ""), "b"},
		"two where one is too small": {[]*corev1.Pod{burstable("a", "1"), burstable("b", "1"), burstable("c", "2")}, agent("3", ""), "a c"},
		"burstable before guaranteed": {[]*corev1.Pod{sized("g", 0, "2", "1Gi", true), burstable("a", "1"), burstable("b", "1")},
			agent("2", ""), "a b"},
		"guaranteed if it must be":  {[]*corev1.Pod{sized("g", 0, "3", "1Gi", true), burstable("a", "1")}, agent("2", ""), "g"},
		"the more important stays":  {[]*corev1.Pod{sized("other", system, "3", "", false), burstable("a", "1")}, agent("1", ""), "a"},
		"only more important":       {[]*corev1.Pod{sized("other", system, "4", "", false)}, agent("1", ""), "-"},
		"even more critical":        {[]*corev1.Pod{sized("other", system, "4", "", false)}, sized("agent", system+1000, "1", "", false), "other"},
		"not critical":              {[]*corev1.Pod{burstable("a", "4")}, sized("agent", system-1, "1", "", false), "-"},
		"too big for the node":      {[]*corev1.Pod{burstable("a", "4")}, agent("5", ""), "-"},
		"two resources":             {[]*corev1.Pod{sized("cpu", 0, "3", "", false), sized("both", 0, "1", "4Gi", false)}, agent("1", "1Gi"), "both"},
		"places":                    {[]*corev1.Pod{sized("a", 0, "", "", false), sized("b", 0, "", "", false), burstable("c", "1"), burstable("d", "1"), burstable("e", "1"), burstable("f", "1")}, agent("", ""), "a"},
		"an unwanted node":          {[]*corev1.Pod{burstable("a", "4")}, elsewhere(agent("1", "")), "-"},
		"a port of somebody's pod":  {[]*corev1.Pod{withPort(burstable("a", "4"))}, withPort(agent("1", "")), "-"},
		"best effort gives no CPUs": {[]*corev1.Pod{sized("a", 0, "", "", false), burstable("b", "4")}, agent("1", ""), "b"},
	} {
		t.Run(name, func(t *testing.T) {
			n := NewNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here"}})
			n.Object.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
				corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("6")}
			for _, p := range c.there {
				n.Add(Place(p))
			}
			victims, ok := MakeRoom(c.comes, n)
			var names []string
			for _, p := range victims {
				names = append(names, p.Name)
			}
			slices.Sort(names)
			got := strings.Join(names, " ")
			if !ok {
				got += "-"
			}
			if got != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			if n.Len() != len(c.there) {
				t.Error("the node has changed")
			}
			for _, p := range victims {
				n.Remove(p.UID)
			}
			if m := Admit(c.comes, n); ok && m != nil {
				t.Errorf("it does not fit afterwards: %+v", m)
			}
		})
	}
}

func elsewhere(p *corev1.Pod) *corev1.Pod {
	p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	return p
}

func withPort(p *corev1.Pod) *corev1.Pod {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: corev1.ProtocolTCP}}
	return p
}
