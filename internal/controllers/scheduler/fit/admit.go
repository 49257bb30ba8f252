// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Misfit is why a node refuses a pod that was bound to it, in the words of Kubernetes' own node.
type Misfit struct {
	Reason, Message string
	Resource        string // of which there is not enough; "" for another reason
}

// Admit judges a pod that is bound to a node, whoever bound it, and returns nil if the node can take it. The node
// judges less than the scheduler: not whom the pod wants beside it, and of the taints only those that drive pods away.
// Of several reasons the first one counts.
func Admit(pod *corev1.Pod, n *Node) *Misfit {
	q := newQuestion(pod, Cluster{})
	if lacks := q.lacks(n); len(lacks) > 0 {
		l := lacks[0]
		return &Misfit{Reason: "OutOf" + string(l.name), Resource: string(l.name), Message: fmt.Sprintf(
			"Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", l.name, l.requested, l.used,
			l.capacity)}
	}
	return q.unsuitable(n)
}

// unsuitable is why a node refuses a pod that it has room for.
func (q *question) unsuitable(n *Node) *Misfit {
	predicate := func(name string, why []string) *Misfit {
		return &Misfit{Reason: name, Message: fmt.Sprintf("Predicate %s failed: %s", name, strings.Join(why, ", "))}
	}
	if why := q.nodeAffinity(n); len(why) > 0 {
		return predicate("NodeAffinity", why)
	}
	if q.pod.Spec.NodeName != n.Object.Name {
		return predicate("NodeName", []string{"node(s) didn't match the requested node name"})
	}
	if why := q.ports(n); len(why) > 0 {
		return predicate("NodePorts", why)
	}
	// No annotation is an exception: every pod here comes from the API server, where its owner can write it.
	if slices.ContainsFunc(n.Object.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute && !podspec.Tolerates(q.pod, t)
	}) {
		return predicate("TaintToleration", []string{"node(s) had taints that the pod didn't tolerate"})
	}
	return nil
}

// lack is a resource of which a pod asks for more than is left: CPUs by the thousandth, other things by their unit.
type lack struct {
	name                      corev1.ResourceName
	requested, used, capacity int64
}

// lacks finds the resources of which the pod asks for more than is left. What the node does not know at all, if it is
// somebody's extended resource, is not the node's to judge: there are such as belong to the whole cluster.
func (q *question) lacks(n *Node) (all []lack) {
	room := n.Object.Status.Allocatable
	if pods, ok := room[corev1.ResourcePods]; ok && int64(len(n.pods)+1) > pods.Value() {
		all = append(all, lack{corev1.ResourcePods, 1, int64(len(n.pods)), pods.Value()})
	}
	for _, name := range inOrder(q.need.requests) {
		need, used, has := q.need.requests[name], n.requested[name], room[name]
		if _, known := room[name]; !known && strings.Contains(string(name), "/") {
			continue
		}
		free := has.DeepCopy()
		free.Sub(used)
		if need.Sign() > 0 && need.Cmp(free) > 0 {
			all = append(all, lack{name, count(name, need), count(name, used), count(name, has)})
		}
	}
	return all
}

// count is how messages give amounts: CPUs by the thousandth.
func count(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// inOrder is the order in which resources are looked at.
func inOrder(list corev1.ResourceList) []corev1.ResourceName {
	first := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	var rest []corev1.ResourceName
	for name := range list {
		if !slices.Contains(first, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return append(first, rest...)
}
