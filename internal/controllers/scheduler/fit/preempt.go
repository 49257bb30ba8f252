// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Preemption is what makes room for a pod: the node that it gets, and the pods that have to go from there.
type Preemption struct {
	Node    string
	Victims []*corev1.Pod // the most important first; those that are going already are not among them
	// Broken is how many of them a disruption budget wanted to stay.
	Broken int
}

// Preempt finds the node on which the least has to go for a pod that fits nowhere: pods of lower priority, as few as
// will do, and of them those stay if they can whom a disruption budget protects, then the more important ones. Among
// nodes it is the one where the fewest budgets are broken, then the one whose most important victim is the least so,
// then the one whose victims' priorities add up to less, then the one with fewer, then the one whose most important
// victims have run for the shortest time. ok is false if the pod may make nobody go, or it would not help. c stays as
// it is.
func Preempt(pod *corev1.Pod, c Cluster, budgets []Budget) (p Preemption, ok bool) {
	if pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever {
		return Preemption{}, false
	}
	for _, name := range slices.Sorted(maps.Keys(c.Nodes)) {
		if c.Nodes[name].Object == nil {
			continue
		}
		here, fits := victimsOn(pod, name, c, budgets)
		if fits && (!ok || cheaper(here, p)) {
			p, ok = here, true
		}
	}
	if ok {
		p.Victims = slices.DeleteFunc(p.Victims, func(v *corev1.Pod) bool { return v.DeletionTimestamp != nil })
	}
	return p, ok
}

// victimsOn are the pods that have to go from a node; fits is false if it would not help, or if none has to.
func victimsOn(pod *corev1.Pod, name string, c Cluster, budgets []Budget) (p Preemption, fits bool) {
	n := c.Nodes[name].clone()
	c = c.with(name, n)
	q := newQuestion(pod, c)
	if len(q.unschedulable(n)) > 0 || len(q.taints(n)) > 0 || len(q.nodeAffinity(n)) > 0 {
		return Preemption{}, false // whoever goes
	}
	var lower []*Placed
	for _, there := range n.pods {
		if podspec.Priority(there.Pod) < podspec.Priority(pod) {
			lower = append(lower, there)
		}
	}
	for _, there := range lower {
		n.Remove(there.Pod.UID)
	}
	if len(lower) == 0 || len(q.refusals(n)) > 0 {
		return Preemption{}, false
	}
	slices.SortFunc(lower, func(a, b *Placed) int { return byImportance(a.Pod, b.Pod) })
	p.Node = name
	protected, others := split(lower, budgets)
	p.Victims = q.reprieve(n, protected)
	p.Broken = len(p.Victims)
	p.Victims = append(p.Victims, q.reprieve(n, others)...)
	slices.SortFunc(p.Victims, byImportance)
	return p, len(p.Victims) > 0
}

// reprieve lets those stay on a node, in their order, beside whom the pod still fits, and returns the others. Those
// that are going are gone.
func (q *question) reprieve(n *Node, all []*Placed) (victims []*corev1.Pod) {
	for _, p := range all {
		if p.Pod.DeletionTimestamp == nil {
			n.Add(p)
			if len(q.refusals(n)) == 0 {
				continue
			}
			n.Remove(p.Pod.UID)
		}
		victims = append(victims, p.Pod)
	}
	return victims
}

// byImportance puts the pod of the higher priority first, then the one that has run for longer.
func byImportance(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(podspec.Priority(b), podspec.Priority(a)), began(a).Compare(began(b).Time),
		strings.Compare(string(a.UID), string(b.UID)))
}

func began(pod *corev1.Pod) *metav1.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime
	}
	return &pod.CreationTimestamp
}

// cheaper reports whether one node's victims are to go rather than another's. Neither is without any.
func cheaper(x, y Preemption) bool {
	sum := func(pods []*corev1.Pod) (all int64) {
		for _, p := range pods {
			all += int64(podspec.Priority(p)) + 1<<31 // so that each counts, also those below zero
		}
		return all
	}
	a, b := x.Victims, y.Victims
	return cmp.Or(cmp.Compare(x.Broken, y.Broken), cmp.Compare(podspec.Priority(a[0]), podspec.Priority(b[0])),
		cmp.Compare(sum(a), sum(b)), cmp.Compare(len(a), len(b)), began(b[0]).Compare(began(a[0]).Time)) < 0
}

// DecideBeside is [Decide] with pods that no node has yet, but that one is promised to: the pod has to fit both with
// those of them that are no less important than it, and without them.
func DecideBeside(pod *corev1.Pod, c Cluster, promised map[string][]*corev1.Pod) Decision {
	beside := c
	for name, pods := range promised {
		n := c.Nodes[name]
		if n == nil {
			continue
		}
		changed := false
		for _, p := range pods {
			if p.UID == pod.UID || podspec.Priority(p) < podspec.Priority(pod) {
				continue
			}
			if !changed {
				n, changed = n.clone(), true
			}
			n.Add(Place(p))
		}
		if changed {
			beside = beside.with(name, n)
		}
	}
	d := Decide(pod, beside)
	if d.Node == "" {
		return d
	}
	if len(newQuestion(pod, c).refusals(c.Nodes[d.Node])) > 0 {
		return Decide(pod, c) // it wants to be with one that is not there yet: where it fits now, or why it does not
	}
	return d
}

// with is the cluster with another state of one node.
func (c Cluster) with(name string, n *Node) Cluster {
	c.Nodes = maps.Clone(c.Nodes)
	c.Nodes[name] = n
	return c
}

// clone is a node whose pods may be changed.
func (n *Node) clone() *Node {
	return &Node{Object: n.Object, pods: maps.Clone(n.pods), requested: maps.Clone(n.requested)}
}
