// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// full is what a node gets that meets a wish as well as any: each kind of wish is worth as much as the others, as they
// are to Kubernetes' scheduler by default.
const full = 100

// requiredWeight is what it is worth to a pod on a node, which has to be beside such as this one, that it comes
// (Kubernetes, InterPodAffinityArgs: hardPodAffinityWeight, 1 by default).
const requiredWeight = 1

// wanted says of each node how much it is to the liking of the pod, and of those pods that would be beside it: the sum
// of what it gets for the preferred node affinity, for preferred pod affinity and anti-affinity, and for the topology
// spread constraints that do not forbid scheduling.
func (q *question) wanted(nodes []*Node) []int64 {
	sum := make([]int64, len(nodes))
	for _, points := range [][]int64{q.preferredNodes(nodes), q.preferredPods(nodes), q.evenly(nodes)} {
		for i, p := range points {
			sum[i] += p
		}
	}
	return sum
}

// preferredNodes gives points for the preferred node affinity: the node whose labels meet the most weight gets them
// all, the others their share of that. nil: the pod prefers none.
func (q *question) preferredNodes(nodes []*Node) []int64 {
	a := q.pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		return nil // validation refuses it long before
	}
	points := make([]int64, len(nodes))
	for i, n := range nodes {
		points[i] = terms.Score(n.Object)
	}
	most := slices.Max(points)
	for i := range points {
		points[i] = share(points[i], most)
	}
	return points
}

// preferredPods gives points for preferred pod affinity and anti-affinity: all to the node with the largest sum of
// weights, none to that with the smallest, which may be below zero. nil: nobody prefers anything.
func (q *question) preferredPods(nodes []*Node) []int64 {
	sums := q.pull()
	if len(sums) == 0 {
		return nil
	}
	points := make([]int64, len(nodes))
	for i, n := range nodes {
		for d, weight := range sums {
			if value, ok := n.Object.Labels[d.key]; ok && value == d.value {
				points[i] += weight
			}
		}
	}
	least, most := slices.Min(points), slices.Max(points)
	for i := range points {
		points[i] = share(points[i]-least, most-least)
	}
	return points
}

// domain is the nodes that have a value of a label.
type domain struct{ key, value string }

// pull adds up, for each domain, the weights of the terms by which the pod wants to be with pods there or away from
// them, and by which those want to be with it or away from it.
func (q *question) pull() map[domain]int64 {
	sums := map[domain]int64{}
	own := leanings(q.pod)
	for _, n := range q.cluster.Nodes {
		if n.Object == nil {
			continue
		}
		for _, there := range n.pods {
			for _, l := range own {
				q.tally(sums, l, q.pod, there.Pod, n)
			}
			for _, l := range append(leanings(there.Pod), needed(there.Pod)...) {
				q.tally(sums, l, there.Pod, q.pod, n)
			}
		}
	}
	return sums
}

// tally counts a term of owner's if other is one that it means: in the domain of the node that one of them is on.
func (q *question) tally(sums map[domain]int64, l leaning, owner, other *corev1.Pod, n *Node) {
	value, ok := n.Object.Labels[l.term.TopologyKey]
	if ok && q.matches(owner, l.term, other) {
		sums[domain{l.term.TopologyKey, value}] += l.weight
	}
}

// leaning is a term by which a pod wants to be with others, or away from them if the weight is below zero.
type leaning struct {
	term   corev1.PodAffinityTerm
	weight int64
}

// leanings are the preferred terms of a pod.
func leanings(pod *corev1.Pod) (all []leaning) {
	a := pod.Spec.Affinity
	if a == nil {
		return nil
	}
	if a.PodAffinity != nil {
		for _, w := range a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			all = append(all, leaning{w.PodAffinityTerm, int64(w.Weight)})
		}
	}
	if a.PodAntiAffinity != nil {
		for _, w := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			all = append(all, leaning{w.PodAffinityTerm, -int64(w.Weight)})
		}
	}
	return all
}

// needed are the required terms of the affinity of a pod that is on a node. Those of anti-affinity are no preference:
// they keep others from there.
func needed(pod *corev1.Pod) (all []leaning) {
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		for _, term := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			all = append(all, leaning{term, requiredWeight})
		}
	}
	return all
}

// evenly gives points for the topology spread constraints that do not forbid scheduling: for each, the fewer of the
// pods that it means are in the node's domain the more, and their mean in the end. A node that lacks a label of one
// gets none, whatever the others say. nil: there are none.
func (q *question) evenly(nodes []*Node) []int64 {
	points := make([]int64, len(nodes))
	lacking := make([]bool, len(nodes))
	constraints := int64(0)
	for i := range q.pod.Spec.TopologySpreadConstraints {
		c := &q.pod.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.ScheduleAnyway {
			continue
		}
		constraints++
		for i, p := range q.sparsely(c, nodes) {
			points[i] += p
			_, has := nodes[i].Object.Labels[c.TopologyKey]
			lacking[i] = lacking[i] || !has
		}
	}
	if constraints == 0 {
		return nil
	}
	for i := range points {
		points[i] /= constraints
		if lacking[i] {
			points[i] = 0
		}
	}
	return points
}

// sparsely gives points for one constraint: all to the nodes with the fewest of its pods in their domain, the others
// less by their distance to those, seen in proportion to the fullest domain. The more skew the constraint allows, the
// less a difference matters.
func (q *question) sparsely(c *corev1.TopologySpreadConstraint, nodes []*Node) []int64 {
	counts := q.domains(c)
	least, most := int64(-1), int64(0)
	for _, n := range nodes {
		if value, ok := n.Object.Labels[c.TopologyKey]; ok {
			there := int64(counts[value])
			if least < 0 || there < least {
				least = there
			}
			most = max(most, there)
		}
	}
	scale := most + int64(c.MaxSkew) - 1
	points := make([]int64, len(nodes))
	for i, n := range nodes {
		if value, ok := n.Object.Labels[c.TopologyKey]; ok {
			points[i] = full - share(int64(counts[value])-least, scale)
		}
	}
	return points
}

// share is part of whole in points; nothing of nothing is none.
func share(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return part * full / whole
}
