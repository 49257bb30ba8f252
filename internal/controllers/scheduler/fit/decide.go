// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Cluster is all that a decision depends on besides the pod.
type Cluster struct {
	Nodes map[string]*Node
	// NamespaceLabels are for namespaceSelectors of pod affinity.
	NamespaceLabels map[string]labels.Set
}

// Decision is a node, or the reason why there is none.
type Decision struct {
	// Node is empty when the pod fits nowhere.
	Node string
	// Refusal is for the user: "0/1 nodes are available: 1 Insufficient memory."
	Refusal string
	// Crowded says that there are nodes, which others on them may keep the pod from.
	Crowded bool
}

// Decide picks a node for a pod: of those that can take it, the one that is least used, after what the pod prefers.
func Decide(pod *corev1.Pod, c Cluster) Decision {
	q := newQuestion(pod, c)
	reasons := map[string]int{}
	var fits []*Node
	total := 0
	for _, name := range slices.Sorted(maps.Keys(c.Nodes)) {
		n := c.Nodes[name]
		if n.Object == nil {
			continue
		}
		total++
		if why := q.refusals(n); len(why) > 0 {
			for _, w := range why {
				reasons[w]++
			}
			continue
		}
		fits = append(fits, n)
	}
	if len(fits) > 0 {
		return Decision{Node: q.best(fits).Object.Name}
	}
	if total == 0 {
		return Decision{Refusal: "no nodes available to schedule pods"}
	}
	var parts []string
	for why, n := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", n, why))
	}
	slices.Sort(parts)
	return Decision{Crowded: true, Refusal: fmt.Sprintf("0/%d nodes are available: %s.", total,
		strings.Join(parts, ", "))}
}

// question is one pod looking for a node.
type question struct {
	pod      *corev1.Pod
	need     *Placed
	cluster  Cluster
	affinity nodeaffinity.RequiredNodeAffinity
}

func newQuestion(pod *corev1.Pod, c Cluster) *question {
	return &question{pod: pod, need: Place(pod), cluster: c, affinity: nodeaffinity.GetRequiredNodeAffinity(pod)}
}

// refusals says why the pod cannot go to a node: the reasons of the first check that it fails.
func (q *question) refusals(n *Node) []string {
	for _, check := range []func(*Node) []string{
		q.unschedulable, q.taints, q.nodeAffinity, q.ports, q.resources, q.spread, q.podAffinity,
	} {
		if why := check(n); len(why) > 0 {
			return why
		}
	}
	return nil
}

func (q *question) unschedulable(n *Node) []string {
	if !n.Object.Spec.Unschedulable {
		return nil
	}
	mark := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if podspec.Tolerates(q.pod, mark) {
		return nil
	}
	return []string{"node(s) were unschedulable"}
}

func (q *question) taints(n *Node) []string {
	for _, t := range n.Object.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !podspec.Tolerates(q.pod, t) {
			return []string{fmt.Sprintf("node(s) had untolerated taint {%s: %s}", t.Key, t.Value)}
		}
	}
	return nil
}

func (q *question) nodeAffinity(n *Node) []string {
	// An affinity that cannot be read matches no node; validation refuses it long before.
	if ok, err := q.affinity.Match(n.Object); ok && err == nil {
		return nil
	}
	return []string{"node(s) didn't match Pod's node affinity/selector"}
}

func (q *question) ports(n *Node) []string {
	if len(q.need.ports) == 0 {
		return nil
	}
	for _, p := range n.pods {
		for _, taken := range p.ports {
			if slices.ContainsFunc(q.need.ports, taken.clashes) {
				return []string{"node(s) didn't have free ports for the requested pod ports"}
			}
		}
	}
	return nil
}

func (q *question) resources(n *Node) []string {
	var why []string
	room := n.Object.Status.Allocatable
	if pods, ok := room[corev1.ResourcePods]; ok && int64(len(n.pods)+1) > pods.Value() {
		why = append(why, "Too many pods")
	}
	for name, need := range q.need.requests {
		if need.Sign() <= 0 {
			continue
		}
		free := room[name].DeepCopy()
		free.Sub(n.requested[name])
		if need.Cmp(free) > 0 {
			why = append(why, "Insufficient "+string(name))
		}
	}
	return why
}

// score orders the nodes that can take the pod.
type score struct {
	avoided int   // soft taints that the pod does not tolerate
	wanted  int64 // points for what the pod prefers
	used    float64
}

func (s score) better(o score) bool {
	return cmp.Or(cmp.Compare(s.avoided, o.avoided), cmp.Compare(o.wanted, s.wanted),
		cmp.Compare(s.used, o.used)) < 0
}

// best is the one of these nodes with the fewest soft taints against the pod, then the one that is most to the pod's
// liking, then the one that is least used, then the first.
func (q *question) best(fits []*Node) *Node {
	if len(fits) == 1 {
		return fits[0] // as on most machines: there is nothing to weigh
	}
	wanted := q.wanted(fits)
	var best *Node
	var bestScore score
	for i, n := range fits {
		if s := q.score(n, wanted[i]); best == nil || s.better(bestScore) {
			best, bestScore = n, s
		}
	}
	return best
}

func (q *question) score(n *Node, wanted int64) score {
	s := score{wanted: wanted}
	for _, t := range n.Object.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule && !podspec.Tolerates(q.pod, t) {
			s.avoided++
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		used := n.requested[name].DeepCopy()
		used.Add(q.need.requests[name])
		if room := n.Object.Status.Allocatable[name]; !room.IsZero() {
			s.used += used.AsApproximateFloat64() / room.AsApproximateFloat64()
		}
	}
	return s
}
