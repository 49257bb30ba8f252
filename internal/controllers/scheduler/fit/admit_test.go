// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PL-20: what the node refuses of pods that others have bound to it, and in which words.
func TestAdmit(t *testing.T) {
	asks := func(name, amount string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(amount)}
		}
	}
	port := func(n int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: n}} }
	}
	toleration := corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists}
	for _, tc := range []struct {
		name            string
		change          func(*corev1.Pod)
		reason, message string
	}{
		{"nothing", func(*corev1.Pod) {}, "", ""},
		{"what is left", asks("cpu", "3"), "", ""},
		{"CPU", asks("cpu", "3500m"), "OutOfcpu", "Node didn't have enough resource: cpu, requested: 3500, used: 1000, capacity: 4000"},
		{"memory", asks("memory", "1Gi"), "OutOfmemory", "Node didn't have enough resource: memory, requested: 1073741824, used: 0, capacity: 1000"},
		{"disk", asks("ephemeral-storage", "2k"), "OutOfephemeral-storage", "Node didn't have enough resource: ephemeral-storage, requested: 2000, used: 0, capacity: 1000"},
		{"huge pages that it has not", asks("hugepages-2Mi", "2Mi"), "OutOfhugepages-2Mi", "Node didn't have enough resource: hugepages-2Mi, requested: 2097152, used: 0, capacity: 0"},
		{"an extended resource", asks("example.com/dongle", "2"), "", ""},
		{"more of an extended resource", asks("example.com/dongle", "3"), "OutOfexample.com/dongle", "Node didn't have enough resource: example.com/dongle, requested: 3, used: 0, capacity: 2"},
		{"an extended resource that is not the node's", asks("example.com/licence", "3"), "", ""},
		{"a port that is free", port(81), "", ""},
		{"a port that is taken", port(80), "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
		{"labels it has", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }, "", ""},
		{"labels it has not", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "hdd"} },
			"NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		{"affinity", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gpu", Operator: corev1.NodeSelectorOpExists}}}}}}}
		}, "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		{"another node", func(p *corev1.Pod) { p.Spec.NodeName = "there" }, "NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name"},
		{"no toleration", func(p *corev1.Pod) { p.Spec.Tolerations = nil },
			"TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"},
		{"one that says of itself that it is static", func(p *corev1.Pod) {
			p.Spec.Tolerations, p.Annotations = nil, map[string]string{"kubernetes.io/config.source": "file"}
		}, "TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"},
		{"several reasons", func(p *corev1.Pod) { asks("cpu", "9")(p); port(80)(p) }, "OutOfcpu", "Node didn't have enough resource: cpu, requested: 9000, used: 1000, capacity: 4000"},
	} {
		node := NewNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here", Labels: map[string]string{"disk": "ssd"}},
			Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{
				{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoExecute}, {Key: "full", Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				"cpu": resource.MustParse("4"), "memory": resource.MustParse("1k"), "ephemeral-storage": resource.MustParse("1k"),
				"example.com/dongle": resource.MustParse("2"), "pods": resource.MustParse("2")}}})
		pod := func(name string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: "here",
				Tolerations: []corev1.Toleration{toleration}, Containers: []corev1.Container{{Name: "c"}}}}
		}
		first := pod("first")
		asks("cpu", "1")(first)
		port(80)(first)
		node.Add(Place(first))
		p := pod("p")
		tc.change(p)
		switch m := Admit(p, node); {
		case m == nil && tc.reason != "":
			t.Errorf("%s: taken, want %s", tc.name, tc.reason)
		case m != nil && (m.Reason != tc.reason || m.Message != tc.message):
			t.Errorf("%s: %+v, want %s: %s", tc.name, *m, tc.reason, tc.message)
		}
		node.Add(Place(pod("second")))
		if m := Admit(p, node); m == nil || m.Reason != "OutOfpods" || m.Message != "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2" {
			t.Errorf("%s, on a full node: %+v", tc.name, m)
		}
	}
}
