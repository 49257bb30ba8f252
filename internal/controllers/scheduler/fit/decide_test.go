// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

type mutate[T any] func(*T)

func testNode(name string, change ...mutate[corev1.Node]) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourcePods: resource.MustParse("3"),
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func testPod(name string, change ...mutate[corev1.Pod]) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{"app": "x"}}}
	p.Spec.Containers = []corev1.Container{{Name: "main"}}
	for _, c := range change {
		c(p)
	}
	return p
}

func needs(cpu, memory string) mutate[corev1.Pod] {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list(cpu, memory) }
}

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func onHostPort(port int32, ip string, protocol corev1.Protocol) mutate[corev1.Pod] {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port, HostIP: ip, Protocol: protocol}}
	}
}

func tainted(key, value string, effect corev1.TaintEffect) mutate[corev1.Node] {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func labelled(key, value string) mutate[corev1.Node] {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func term(app, topology string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: topology, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
}

func apart(t corev1.PodAffinityTerm) mutate[corev1.Pod] {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{t}}}
	}
}

func together(t corev1.PodAffinityTerm) mutate[corev1.Pod] {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{t}}}
	}
}

func app(name string) mutate[corev1.Pod] {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": name} }
}

const host = "kubernetes.io/hostname"

// cluster puts pods on nodes: "node" -> pods.
func cluster(nodes []*corev1.Node, placed map[string][]*corev1.Pod) Cluster {
	c := Cluster{Nodes: map[string]*Node{}, NamespaceLabels: map[string]labels.Set{"default": {"team": "a"}, "other": {"team": "b"}}}
	for _, n := range nodes {
		c.Nodes[n.Name] = NewNode(n)
		for _, p := range placed[n.Name] {
			c.Nodes[n.Name].Add(Place(p))
		}
	}
	return c
}

// TestDecide: PL-15, a pod that fits nowhere says why in words a user can act on. SC-14, sidecars and inits count.
func TestDecide(t *testing.T) {
	one := func(change ...mutate[corev1.Node]) []*corev1.Node { return []*corev1.Node{testNode("one", change...)} }
	two := func(change ...mutate[corev1.Node]) []*corev1.Node {
		return []*corev1.Node{testNode("one", change...), testNode("two", change...)}
	}
	on := func(pods ...*corev1.Pod) map[string][]*corev1.Pod { return map[string][]*corev1.Pod{"one": pods} }
	always := ptr.To(corev1.ContainerRestartPolicyAlways)
	for _, tc := range []struct {
		name   string
		nodes  []*corev1.Node
		placed map[string][]*corev1.Pod
		pod    *corev1.Pod
		want   string // a node, or the refusal
	}{
		{"an empty node", one(), nil, testPod("p", needs("2", "1Gi")), "one"},
		{"no node at all", nil, nil, testPod("p"), "no nodes available to schedule pods"},
		{"PL-15 memory", one(), nil, testPod("p", needs("1", "2Gi")), "0/1 nodes are available: 1 Insufficient memory."},
		{"PL-15 both", one(), nil, testPod("p", needs("3", "2Gi")), "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."},
		{"PL-15 what is there already counts", one(), on(testPod("a", needs("1500m", "0"))), testPod("p", needs("600m", "0")), "0/1 nodes are available: 1 Insufficient cpu."},
		{"it just fits", one(), on(testPod("a", needs("1500m", "0"))), testPod("p", needs("500m", "0")), "one"},
		{"an unknown resource", one(), nil, testPod("p", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
		}), "0/1 nodes are available: 1 Insufficient example.com/gpu."},
		{"too many pods", one(), on(testPod("a"), testPod("b"), testPod("c")), testPod("p"), "0/1 nodes are available: 1 Too many pods."},
		{"SC-14 a sidecar adds to the mains", one(), nil, testPod("p", needs("1500m", "0"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "s", RestartPolicy: always, Resources: corev1.ResourceRequirements{Requests: list("600m", "0")}}}
		}), "0/1 nodes are available: 1 Insufficient cpu."},
		{"SC-14 an init does not", one(), nil, testPod("p", needs("1500m", "0"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Requests: list("600m", "0")}}}
		}), "one"},
		{"cordoned", one(func(n *corev1.Node) { n.Spec.Unschedulable = true }), nil, testPod("p"), "0/1 nodes are available: 1 node(s) were unschedulable."},
		{"cordoned but tolerated", one(func(n *corev1.Node) { n.Spec.Unschedulable = true }), nil, testPod("p", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}), "one"},
		{"tainted", one(tainted("node.kubernetes.io/not-ready", "", corev1.TaintEffectNoSchedule)), nil, testPod("p"),
			"0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }."},
		{"taint tolerated by value", one(tainted("a", "b", corev1.TaintEffectNoExecute)), nil, testPod("p", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "a", Value: "b"}}
		}), "one"},
		{"another value is not tolerated", one(tainted("a", "b", corev1.TaintEffectNoExecute)), nil, testPod("p", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "a", Value: "c"}, {Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
		}), "0/1 nodes are available: 1 node(s) had untolerated taint {a: b}."},
		{"a soft taint is avoided", []*corev1.Node{testNode("one", tainted("a", "", corev1.TaintEffectPreferNoSchedule)), testNode("two")},
			map[string][]*corev1.Pod{"two": {testPod("a", needs("1", "0"))}}, testPod("p"), "two"},
		{"node selector", two(), nil, testPod("p", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{host: "two"} }), "two"},
		{"node selector of nothing", one(), nil, testPod("p", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }),
			"0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."},
		{"node preference", two(), nil, testPod("p", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: host, Operator: corev1.NodeSelectorOpIn, Values: []string{"two"}}}},
			}}}}
		}), "two"},
		{"the least used", two(), on(testPod("a", needs("1", "0"))), testPod("p", needs("100m", "0")), "two"},
		{"host port taken", one(), on(testPod("a", onHostPort(80, "", "TCP"))), testPod("p", onHostPort(80, "10.0.0.1", "TCP")),
			"0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."},
		{"host port of another protocol", one(), on(testPod("a", onHostPort(80, "", "TCP"))), testPod("p", onHostPort(80, "", "UDP")), "one"},
		{"host port of another address", one(), on(testPod("a", onHostPort(80, "10.0.0.1", "TCP"))), testPod("p", onHostPort(80, "10.0.0.2", "TCP")), "one"},
		{"nodes differ in their reasons", []*corev1.Node{testNode("one", func(n *corev1.Node) { n.Spec.Unschedulable = true }), testNode("two"), testNode("three")}, nil,
			testPod("p", needs("4", "0")), "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."},
		{"anti-affinity", one(), on(testPod("a")), testPod("p", apart(term("x", host))), "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."},
		{"anti-affinity goes elsewhere", two(), on(testPod("a")), testPod("p", apart(term("x", host))), "two"},
		{"anti-affinity of those who are there", one(), on(testPod("a", apart(term("y", host)))), testPod("p", app("y")),
			"0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules."},
		{"anti-affinity is of the namespace", one(), on(testPod("a", func(p *corev1.Pod) { p.Namespace = "other" })), testPod("p", apart(term("x", host))), "one"},
		{"anti-affinity by namespace labels", one(), on(testPod("a", func(p *corev1.Pod) { p.Namespace = "other" })), testPod("p", apart(func() corev1.PodAffinityTerm {
			t := term("x", host)
			t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}
			return t
		}())), "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."},
		{"affinity finds its friend", two(), map[string][]*corev1.Pod{"two": {testPod("a", needs("1", "0"))}}, testPod("p", app("y"), together(term("x", host))), "two"},
		{"affinity without a friend", one(), nil, testPod("p", app("y"), together(term("x", host))), "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."},
		{"the first of a group", one(), nil, testPod("p", together(term("x", host))), "one"},
		{"spread", two(), on(testPod("a"), testPod("b")), testPod("p", spreadOver(host, 1)), "two"},
		{"spread beyond", []*corev1.Node{testNode("one", labelled("zone", "a")), testNode("two", labelled("zone", "b"), func(n *corev1.Node) { n.Spec.Unschedulable = true })}, on(testPod("a")), testPod("p", spreadOver("zone", 1)),
			"0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) were unschedulable."},
		{"spread over an unknown key", one(), nil, testPod("p", spreadOver("rack", 1)),
			"0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label)."},
		{"spread by version", two(), on(testPod("a", version("1"), needs("0", "0")), testPod("b", version("1"))), testPod("p", version("2"), spreadOver(host, 1), func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{host: "one"}
			p.Spec.TopologySpreadConstraints[0].NodeAffinityPolicy = ptr.To(corev1.NodeInclusionPolicyIgnore)
			p.Spec.TopologySpreadConstraints[0].MatchLabelKeys = []string{"version"}
		}), "one"},
		{"anti-affinity of another version", one(), on(testPod("a", version("1"))), testPod("p", version("2"), apart(func() corev1.PodAffinityTerm {
			t := term("x", host)
			t.MatchLabelKeys = []string{"version"}
			return t
		}())), "one"},
		{"spread on one node", one(), on(testPod("a"), testPod("b")), testPod("p", spreadOver(host, 1)), "one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.pod, cluster(tc.nodes, tc.placed))
			if got := d.Node + d.Refusal; got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func spreadOver(key string, skew int32) mutate[corev1.Pod] {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		}}
	}
}

// TestNodeAccounts: what comes and goes leaves the sums as they were.
func TestNodeAccounts(t *testing.T) {
	n := NewNode(testNode("one"))
	small, big := testPod("a", needs("1", "1Mi")), testPod("a", needs("2", "1Mi"))
	if n.Add(Place(small)) {
		t.Error("a new pod makes no room")
	}
	if !n.Add(Place(big)) || n.Len() != 1 {
		t.Error("a pod that changed its needs may make room")
	}
	cpu := n.requested[corev1.ResourceCPU]
	if cpu.String() != "2" {
		t.Errorf("cpu %s", &cpu)
	}
	n.Remove("a")
	n.Remove("a")
	for _, name := range slices.Collect(maps.Keys(n.requested)) {
		if q := n.requested[name]; !q.IsZero() {
			t.Errorf("%s left: %s", name, &q)
		}
	}
}

// BenchmarkDecide: a decision must not be felt beside a binding's write.
func BenchmarkDecide(b *testing.B) {
	var pods []*corev1.Pod
	for i := range 250 {
		pods = append(pods, testPod(fmt.Sprint("p", i), needs("1m", "1Mi")))
	}
	c := cluster([]*corev1.Node{testNode("one", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("300") })}, map[string][]*corev1.Pod{"one": pods})
	pod := testPod("p", needs("1m", "1Mi"))
	for b.Loop() {
		if d := Decide(pod, c); d.Node == "" || strings.Contains(d.Refusal, "x") {
			b.Fatal(d)
		}
	}
}
