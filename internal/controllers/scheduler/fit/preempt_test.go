// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// ranked is a pod of a priority that asks for CPUs.
func ranked(name string, priority int32, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name),
		Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{Priority: &priority, Containers: []corev1.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}
	for _, f := range change {
		f(p)
	}
	return p
}

// budget lets so many go of the pods whose labels say these names.
func budget(allowed int32, apps ...string) Budget {
	return NewBudget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: apps}}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}})
}

func gone(b Budget, name string) Budget {
	b.gone = map[string]metav1.Time{name: {}}
	return b
}

func ofCPUs(name, cpu string, pods ...*corev1.Pod) *Node {
	n := NewNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": name}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}})
	for _, p := range pods {
		n.Add(Place(p))
	}
	return n
}

// TestPreempt: WL-07, as little as will do goes for a pod of higher priority, and nobody in vain.
func TestPreempt(t *testing.T) {
	going := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	never := func(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever) }
	alone := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone",
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "low"}}}}}}
	}
	elsewhere := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "nowhere"} }
	for name, row := range map[string]struct {
		pod   *corev1.Pod
		nodes []*Node
		want  string // node: victims; "": it does not help
		keep  []Budget
	}{
		"the one of lower priority": {ranked("p", 10, "1"), []*Node{ofCPUs("a", "1", ranked("low", 1, "1"))}, "a: low",
			nil},
		"an equal stays": {ranked("p", 10, "1"), []*Node{ofCPUs("a", "1", ranked("same", 10, "1"))}, "",
			nil},
		"too little would be free": {ranked("p", 10, "2"),
			[]*Node{ofCPUs("a", "2", ranked("low", 1, "1"), ranked("high", 20, "1"))}, "", nil},
		"more important ones stay if they can": {ranked("p", 4, "500m"), []*Node{ofCPUs("a", "1",
			ranked("one", 1, "200m"), ranked("two", 2, "300m"), ranked("three", 3, "450m"))}, "a: two one", nil},
		"what is free already counts": {ranked("p", 10, "1"),
			[]*Node{ofCPUs("a", "2", ranked("low", 1, "1"), ranked("lower", 0, "500m"))}, "a: lower", nil},
		"those that are going are gone": {ranked("p", 10, "1"),
			[]*Node{ofCPUs("a", "2", ranked("low", 1, "1"), ranked("mid", 5, "1", going))}, "a: ", nil},
		"the node of the least important": {ranked("p", 10, "1"), []*Node{ofCPUs("a", "1", ranked("mid", 5, "1")),
			ofCPUs("b", "1", ranked("low", 1, "1")), ofCPUs("c", "1", ranked("two", 1, "500m"),
				ranked("three", 1, "500m"))},
			"b: low", nil},
		"whom it does not want beside it": {ranked("p", 10, "1", alone),
			[]*Node{ofCPUs("a", "2", ranked("low", 1, "0"))}, "a: low", nil},
		"a node that it cannot have anyway": {ranked("p", 10, "1", elsewhere),
			[]*Node{ofCPUs("a", "1", ranked("low", 1, "1"))}, "", nil},
		"a budget's pod stays if another will do": {ranked("p", 10, "1"), []*Node{ofCPUs("a", "2",
			ranked("kept", 1, "1"), ranked("free", 5, "1"))}, "a: free", []Budget{budget(0, "kept")}},
		"a budget that has some left": {ranked("p", 10, "1"), []*Node{ofCPUs("a", "2", ranked("kept", 1, "1"),
			ranked("free", 5, "1"))}, "a: kept", []Budget{budget(1, "kept")}},
		"a budget is broken where there is no choice": {ranked("p", 10, "2"), []*Node{ofCPUs("a", "2",
			ranked("kept", 1, "1"), ranked("free", 5, "1"))}, "a: free kept", []Budget{budget(0, "kept")}},
		"the node where no budget is broken": {ranked("p", 10, "1"), []*Node{ofCPUs("a", "1", ranked("kept", 1, "1")),
			ofCPUs("b", "1", ranked("free", 5, "1"))}, "b: free", []Budget{budget(0, "kept")}},
		"one of two of a budget with one left": {ranked("p", 10, "1"), []*Node{ofCPUs("a", "3", ranked("x", 3, "1"),
			ranked("y", 1, "1"), ranked("z", 2, "1"))}, "a: x", []Budget{budget(1, "x", "y"), budget(0, "z")}},
		"one that counts as gone": {ranked("p", 10, "1"), []*Node{ofCPUs("a", "2", ranked("kept", 1, "1"),
			ranked("free", 5, "1"))}, "a: kept", []Budget{gone(budget(0, "kept"), "kept")}},
		"another namespace's budget": {ranked("p", 10, "1"), []*Node{ofCPUs("a", "2", ranked("kept", 1, "1"),
			ranked("free", 5, "1"))}, "a: kept", []Budget{{namespace: "else", selector: labels.Everything()}}},
		"one that makes nobody go": {ranked("p", 10, "1", never), []*Node{ofCPUs("a", "1", ranked("low", 1, "1"))}, "",
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := Cluster{Nodes: map[string]*Node{}}
			for _, n := range row.nodes {
				c.Nodes[n.Object.Name] = n
			}
			before := c.Nodes[row.nodes[0].Object.Name].Len()
			p, ok := Preempt(row.pod, c, row.keep)
			var victims []string
			for _, v := range p.Victims {
				victims = append(victims, v.Name)
			}
			got := ""
			if ok {
				got = p.Node + ": " + strings.Join(victims, " ")
			}
			if got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
			if c.Nodes[row.nodes[0].Object.Name].Len() != before {
				t.Error("the cluster was changed")
			}
		})
	}
}

// TestDecideBeside: WL-07, what is promised to a pod nobody of lower priority gets.
func TestDecideBeside(t *testing.T) {
	c := Cluster{Nodes: map[string]*Node{"a": ofCPUs("a", "1")}}
	promised := map[string][]*corev1.Pod{"a": {ranked("chosen", 5, "800m")}, "gone": {ranked("other", 5, "1")}}
	for name, row := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"of lower priority":        {ranked("low", 1, "500m"), ""},
		"of lower priority, small": {ranked("low", 1, "200m"), "a"},
		"of higher priority":       {ranked("high", 9, "500m"), "a"},
		"the chosen one":           {ranked("chosen", 5, "800m"), "a"},
		"one that wants to be with it": {ranked("low", 1, "100m", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone",
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "chosen"}}}}}}
		}), ""},
	} {
		if d := DecideBeside(row.pod, c, promised); d.Node != row.want {
			t.Errorf("%s: node %q (%s), want %q", name, d.Node, d.Refusal, row.want)
		}
	}
}
