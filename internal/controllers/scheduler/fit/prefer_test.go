// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// likes makes a pod prefer to be with pods that a term means, or away from them if the weight is below zero.
func likes(weight int32, t corev1.PodAffinityTerm) mutate[corev1.Pod] {
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		a := p.Spec.Affinity
		if weight > 0 {
			if a.PodAffinity == nil {
				a.PodAffinity = &corev1.PodAffinity{}
			}
			list := &a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
			*list = append(*list, corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
			return
		}
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		list := &a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, corev1.WeightedPodAffinityTerm{Weight: -weight, PodAffinityTerm: t})
	}
}

// likesNode makes a pod prefer nodes with a label.
func likesNode(weight int32, key, value string) mutate[corev1.Pod] {
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		a := p.Spec.Affinity
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		list := &a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}})
	}
}

// evenlyOver makes a pod prefer to be spread, with those labelled app=x.
func evenlyOver(key string, skew int32, change ...mutate[corev1.TopologySpreadConstraint]) mutate[corev1.Pod] {
	return func(p *corev1.Pod) {
		c := corev1.TopologySpreadConstraint{MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}
		for _, f := range change {
			f(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

func version(v string) mutate[corev1.Pod] { return func(p *corev1.Pod) { p.Labels["version"] = v } }

func in(namespace string) mutate[corev1.Pod] { return func(p *corev1.Pod) { p.Namespace = namespace } }

// zoned are nodes a1 and a2 in zone a, b1 in zone b, and out, of which no zone is known.
func zoned() []*corev1.Node {
	return []*corev1.Node{testNode("a1", labelled("zone", "a")), testNode("a2", labelled("zone", "a")),
		testNode("b1", labelled("zone", "b")), testNode("out")}
}

// TestWanted: WL-07, how much each node is to the liking of a pod, on nodes a1, a2, b1 and out.
func TestWanted(t *testing.T) {
	type pods = map[string][]*corev1.Pod
	going := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	teamB := func() corev1.PodAffinityTerm {
		t := term("x", "zone")
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}
		return t
	}
	sameVersion, otherVersion := term("x", "zone"), term("x", "zone")
	sameVersion.MatchLabelKeys, otherVersion.MismatchLabelKeys = []string{"version"}, []string{"version"}
	byVersion := func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"version"} }
	for _, tc := range []struct {
		name   string
		placed pods
		pod    *corev1.Pod
		want   []int64
	}{
		{"nothing", pods{"a1": {testPod("1")}}, testPod("p"), []int64{0, 0, 0, 0}},
		{"a node's label", nil, testPod("p", likesNode(7, "zone", "b")), []int64{0, 0, 100, 0}},
		{"labels by weight", nil, testPod("p", likesNode(80, "zone", "b"), likesNode(20, "zone", "a"), likesNode(20, host, "a2")),
			[]int64{25, 50, 100, 0}},
		{"labels that no node has", nil, testPod("p", likesNode(7, "zone", "c")), []int64{0, 0, 0, 0}},
		{"with others of its zone", pods{"a1": {testPod("1")}}, testPod("p", likes(5, term("x", "zone"))), []int64{100, 100, 0, 0}},
		{"with others of its node", pods{"a1": {testPod("1")}}, testPod("p", likes(5, term("x", host))), []int64{100, 0, 0, 0}},
		{"each counts", pods{"a1": {testPod("1"), testPod("2")}, "b1": {testPod("3")}}, testPod("p", likes(5, term("x", "zone"))),
			[]int64{100, 100, 50, 0}},
		{"others than it means", pods{"a1": {testPod("1", app("y"))}}, testPod("p", likes(5, term("x", "zone"))), []int64{0, 0, 0, 0}},
		{"others of another namespace", pods{"a1": {testPod("1", in("other"))}}, testPod("p", likes(5, term("x", "zone"))), []int64{0, 0, 0, 0}},
		{"a namespace by its labels", pods{"a1": {testPod("1", in("other"))}}, testPod("p", likes(5, teamB())), []int64{100, 100, 0, 0}},
		{"away from others", pods{"a1": {testPod("1")}}, testPod("p", likes(-5, term("x", "zone"))), []int64{0, 0, 100, 100}},
		{"with some and away from others", pods{"a1": {testPod("1")}, "b1": {testPod("2", app("y"))}},
			testPod("p", likes(30, term("x", "zone")), likes(-10, term("y", "zone"))), []int64{100, 100, 0, 25}},
		{"others want it", pods{"b1": {testPod("1", likes(5, term("x", "zone")))}}, testPod("p"), []int64{0, 0, 100, 0}},
		{"others do not want it", pods{"b1": {testPod("1", likes(-5, term("x", host)))}}, testPod("p"), []int64{100, 100, 0, 100}},
		{"others want somebody else", pods{"b1": {testPod("1", likes(5, term("y", "zone")))}}, testPod("p"), []int64{0, 0, 0, 0}},
		{"others of another kind want it", pods{"b1": {testPod("1", app("y"), likes(5, term("x", "zone")))}}, testPod("p"), []int64{0, 0, 100, 0}},
		{"others want one of their own namespace", pods{"b1": {testPod("1", in("other"), likes(5, term("x", "zone")))}}, testPod("p"),
			[]int64{0, 0, 0, 0}},
		{"others need it", pods{"b1": {testPod("1", together(term("x", "zone")))}}, testPod("p"), []int64{0, 0, 100, 0}},
		{"needing weighs less than a wish", pods{"a1": {testPod("1", together(term("x", "zone")))}, "b1": {testPod("2", likes(4, term("x", "zone")))}},
			testPod("p"), []int64{25, 25, 100, 0}},
		{"with those of its own version", pods{"a1": {testPod("1", version("1"))}, "b1": {testPod("2", version("2"))}},
			testPod("p", version("2"), likes(5, sameVersion)), []int64{0, 0, 100, 0}},
		{"away from other versions", pods{"a1": {testPod("1", version("1"))}, "b1": {testPod("2", version("2"))}},
			testPod("p", version("2"), likes(-5, otherVersion)), []int64{0, 0, 100, 100}},
		{"others want their own version", pods{"b1": {testPod("1", version("1"), likes(5, sameVersion))}, "a1": {testPod("2", version("2"), likes(1, sameVersion))}},
			testPod("p", version("2")), []int64{100, 100, 0, 0}},
		{"a node whose domain is unknown", pods{"out": {testPod("1")}}, testPod("p", likes(5, term("x", "zone"))), []int64{0, 0, 0, 0}},

		{"nobody to spread from", nil, testPod("p", evenlyOver(host, 1)), []int64{100, 100, 100, 100}},
		{"spread over nodes", pods{"a1": {testPod("1"), testPod("2")}, "b1": {testPod("3")}}, testPod("p", evenlyOver(host, 1)),
			[]int64{0, 100, 50, 100}},
		{"spread over zones", pods{"a1": {testPod("1")}, "a2": {testPod("2")}, "b1": {testPod("3")}}, testPod("p", evenlyOver("zone", 1)),
			[]int64{50, 50, 100, 0}},
		{"skew that is allowed matters less", pods{"a1": {testPod("1"), testPod("2")}}, testPod("p", evenlyOver("zone", 3)),
			[]int64{50, 50, 100, 0}},
		{"spread by version", pods{"a1": {testPod("1", version("1"))}, "b1": {testPod("2", version("2"))}},
			testPod("p", version("2"), evenlyOver("zone", 1, byVersion)), []int64{100, 100, 0, 0}},
		{"those that go do not count", pods{"a1": {testPod("1", going)}}, testPod("p", evenlyOver("zone", 1)), []int64{100, 100, 100, 0}},
		{"those of another namespace do not", pods{"a1": {testPod("1", in("other"))}}, testPod("p", evenlyOver("zone", 1)), []int64{100, 100, 100, 0}},
		{"over zones and nodes", pods{"a1": {testPod("1")}}, testPod("p", evenlyOver("zone", 1), evenlyOver(host, 1)), []int64{0, 50, 100, 0}},
		{"a constraint that forbids is no wish", pods{"a1": {testPod("1")}}, testPod("p", spreadOver("zone", 1)), []int64{0, 0, 0, 0}},

		{"wishes add up", pods{"a1": {testPod("1")}}, testPod("p", likesNode(9, "zone", "b"), likes(1, term("x", host)), evenlyOver("zone", 1)),
			[]int64{100, 0, 200, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster(zoned(), tc.placed)
			c.Nodes["unknown"] = NewNode(nil) // pods are known there, the node is not
			c.Nodes["unknown"].Add(Place(testPod("u", likes(100, term("x", "zone")))))
			var nodes []*Node
			for _, n := range zoned() {
				nodes = append(nodes, c.Nodes[n.Name])
			}
			if got := newQuestion(tc.pod, c).wanted(nodes); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestDecidePrefers: WL-07, wishes decide among nodes that can take a pod, before their use and after soft taints, and
// keep it from none.
func TestDecidePrefers(t *testing.T) {
	type pods = map[string][]*corev1.Pod
	busy := testPod("busy", app("y"), needs("1900m", "900Mi"))
	only := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	for _, tc := range []struct {
		name   string
		nodes  []*corev1.Node
		placed pods
		pod    *corev1.Pod
		want   string
	}{
		{"a friend on a busy node", zoned(), pods{"b1": {busy, testPod("1")}}, testPod("p", likes(1, term("x", host))), "b1"},
		{"within the zone, the least used", zoned(), pods{"a1": {testPod("1", needs("1", "0"))}}, testPod("p", likes(1, term("x", "zone"))), "a2"},
		{"away, though it is busy there", zoned()[1:3], pods{"a2": {testPod("1")}, "b1": {busy}}, testPod("p", likes(-1, term("x", host))), "b1"},
		{"spread, though it is busy there", zoned()[:3], pods{"a1": {testPod("1")}, "b1": {busy}}, testPod("p", evenlyOver("zone", 1)), "b1"},
		{"a wish that cannot be met", zoned()[:1], pods{"a1": {testPod("1")}}, testPod("p", likes(-100, term("x", host)), evenlyOver("rack", 1)), "a1"},
		{"a friend where it does not fit", zoned()[:3], pods{"b1": {busy, testPod("1")}}, testPod("p", likes(100, term("x", host)), needs("1", "0")), "a1"},
		{"a friend on a node that is closed", []*corev1.Node{testNode("one"), testNode("two", only)}, pods{"two": {testPod("1")}},
			testPod("p", likes(100, term("x", host))), "one"},
		{"a soft taint comes first", []*corev1.Node{testNode("one"), testNode("two", tainted("a", "", corev1.TaintEffectPreferNoSchedule))},
			pods{"two": {testPod("1")}}, testPod("p", likes(100, term("x", host))), "one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := Decide(tc.pod, cluster(tc.nodes, tc.placed)); d.Node != tc.want {
				t.Errorf("got %s%s, want %s", d.Node, d.Refusal, tc.want)
			}
		})
	}
}

// TestSpreadingIsEven: WL-07, pods that come one after the other and wish to be spread end up evenly.
func TestSpreadingIsEven(t *testing.T) {
	c := cluster(zoned()[:3], nil)
	for _, name := range []string{"1", "2", "3", "4"} {
		p := testPod(name, evenlyOver("zone", 1), evenlyOver(host, 1), needs("10m", "0"))
		d := Decide(p, c)
		if d.Node == "" {
			t.Fatal(d.Refusal)
		}
		c.Nodes[d.Node].Add(Place(p))
	}
	if a, b := c.Nodes["a1"].Len()+c.Nodes["a2"].Len(), c.Nodes["b1"].Len(); a != 2 || b != 2 || c.Nodes["a1"].Len() != 1 {
		t.Errorf("%d in zone a (%d on a1), %d in zone b", a, c.Nodes["a1"].Len(), b)
	}
}

// TestAlike: WL-07, which pods are meant by matchLabelKeys and mismatchLabelKeys, as KEP-3633 and KEP-3243 have it: a
// key that the pod itself does not have means nothing.
func TestAlike(t *testing.T) {
	type labels = map[string]string
	for _, tc := range []struct {
		name            string
		match, mismatch []string
		own, other      labels
		want            bool
	}{
		{"no keys", nil, nil, labels{"v": "1"}, labels{"v": "2"}, true},
		{"the same", []string{"v"}, nil, labels{"v": "1"}, labels{"v": "1"}, true},
		{"another", []string{"v"}, nil, labels{"v": "1"}, labels{"v": "2"}, false},
		{"the other has none", []string{"v"}, nil, labels{"v": ""}, nil, false},
		{"it has none itself", []string{"v"}, nil, nil, labels{"v": "2"}, true},
		{"all keys", []string{"v", "w"}, nil, labels{"v": "1", "w": "1"}, labels{"v": "1", "w": "2"}, false},
		{"not the same", nil, []string{"v"}, labels{"v": "1"}, labels{"v": "2"}, true},
		{"not another", nil, []string{"v"}, labels{"v": "1"}, labels{"v": "1"}, false},
		{"not the same: the other has none", nil, []string{"v"}, labels{"v": ""}, nil, true},
		{"not the same: it has none itself", nil, []string{"v"}, nil, labels{"v": ""}, true},
		{"both", []string{"v"}, []string{"w"}, labels{"v": "1", "w": "1"}, labels{"v": "1", "w": "2"}, true},
		{"both, one fails", []string{"v"}, []string{"w"}, labels{"v": "1", "w": "1"}, labels{"v": "1", "w": "1"}, false},
	} {
		if got := alike(tc.match, tc.mismatch, tc.own, tc.other); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}
