// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/controllers/scheduler/fit"
	"github.com/wherryproject/wherry/internal/podspec"
)

// state is what the scheduler knows. It belongs to one goroutine.
type state struct {
	cluster fit.Cluster
	where   map[types.UID]string   // node of each pod that counts on one
	waiting map[types.UID]*waiting // pods without a node
}

// waiting is a pod that has no node yet.
type waiting struct {
	pod     *corev1.Pod
	try     bool      // something happened since it was last tried
	binding bool      // it is being bound, and already counts on its node
	failed  int       // bindings that failed in a row
	retry   time.Time // when a failed binding is tried again; zero: none failed
	shown   string    // the refusal that was last published
	// nominated is the node that it is promised, once those have gone that are going for it.
	nominated string
	victims   []*corev1.Pod
	// budgets are those to be minded if somebody has to go for it; nil: they are not known. asking says that they are
	// being read.
	budgets []fit.Budget
	asking  bool
}

func newState() *state {
	return &state{
		cluster: fit.Cluster{Nodes: map[string]*fit.Node{}, NamespaceLabels: map[string]labels.Set{}},
		where:   map[types.UID]string{},
		waiting: map[types.UID]*waiting{},
	}
}

// node is where the pods of a node are kept, known or not: pods may be heard of before their node.
func (s *state) node(name string) *fit.Node {
	n, ok := s.cluster.Nodes[name]
	if !ok {
		n = fit.NewNode(nil)
		s.cluster.Nodes[name] = n
	}
	return n
}

func (s *state) setNode(object *corev1.Node) {
	n := s.node(object.Name)
	old := n.Object
	n.Object = object
	if old == nil || !sameForPods(old, object) {
		s.tryAll()
	}
}

// sameForPods is true when the difference matters to no pod; most updates of a node are signs of life.
func sameForPods(a, b *corev1.Node) bool {
	return a.Spec.Unschedulable == b.Spec.Unschedulable &&
		equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints) &&
		equality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.Status.Allocatable, b.Status.Allocatable)
}

func (s *state) deleteNode(object *corev1.Node) {
	n := s.node(object.Name)
	n.Object = nil
	if n.Len() == 0 {
		delete(s.cluster.Nodes, object.Name)
	}
}

func (s *state) setNamespace(ns *corev1.Namespace) {
	if !labels.Equals(s.cluster.NamespaceLabels[ns.Name], ns.Labels) {
		s.cluster.NamespaceLabels[ns.Name] = ns.Labels
		s.tryAll()
	}
}

func (s *state) deleteNamespace(ns *corev1.Namespace) { delete(s.cluster.NamespaceLabels, ns.Name) }

func (s *state) setPod(pod *corev1.Pod) {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		s.deletePod(pod)
	case pod.Spec.NodeName != "":
		delete(s.waiting, pod.UID)
		s.place(fit.Place(pod), pod.Spec.NodeName)
	case !ours(pod):
		s.deletePod(pod)
	default:
		s.wait(pod)
	}
}

// ours says whether the pod wants a node, and from this scheduler, now.
func ours(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 &&
		(pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == Name)
}

// wait takes up a pod without a node, or what changed about it.
func (s *state) wait(pod *corev1.Pod) {
	w, ok := s.waiting[pod.UID]
	if !ok {
		s.waiting[pod.UID] = &waiting{pod: pod, try: true, shown: refusalIn(pod),
			nominated: pod.Status.NominatedNodeName}
		return
	}
	if !equality.Semantic.DeepEqual(w.pod.Spec, pod.Spec) || !labels.Equals(w.pod.Labels, pod.Labels) {
		w.try = true
	}
	w.pod = pod
}

// refusalIn is the refusal that the pod's status already shows, from before a restart.
func refusalIn(pod *corev1.Pod) string {
	c := podspec.Condition(&pod.Status, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
		return ""
	}
	return c.Message
}

// place counts a pod on a node. If that makes it need less than it did, others may fit now.
func (s *state) place(p *fit.Placed, node string) {
	old, was := s.where[p.Pod.UID]
	if was && old != node {
		s.node(old).Remove(p.Pod.UID)
	}
	s.where[p.Pod.UID] = node
	if s.node(node).Add(p) {
		s.tryAll()
	} else if !was {
		s.tryNeighbours()
	}
}

// tryNeighbours has those pods tried again to which it matters who is where.
func (s *state) tryNeighbours() {
	for _, w := range s.waiting {
		a := w.pod.Spec.Affinity
		if len(w.pod.Spec.TopologySpreadConstraints) > 0 || (a != nil && a.PodAffinity != nil) {
			w.try = true
		}
	}
}

func (s *state) deletePod(pod *corev1.Pod) {
	delete(s.waiting, pod.UID)
	s.unplace(pod.UID)
}

func (s *state) unplace(uid types.UID) {
	name, ok := s.where[uid]
	if !ok {
		return
	}
	delete(s.where, uid)
	n := s.node(name)
	n.Remove(uid)
	if n.Object == nil && n.Len() == 0 {
		delete(s.cluster.Nodes, name)
	}
	s.tryAll()
}

// tryAll has every pod that did not fit tried again.
func (s *state) tryAll() {
	for _, w := range s.waiting {
		w.try = true
	}
}

// due are the pods to try now, the most important first, then the oldest.
func (s *state) due(now time.Time) []*waiting {
	var out []*waiting
	for _, w := range s.waiting {
		if !w.binding && w.try && !w.retry.After(now) {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *waiting) int {
		return cmp.Or(
			cmp.Compare(ptr.Deref(b.pod.Spec.Priority, 0), ptr.Deref(a.pod.Spec.Priority, 0)),
			a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time),
			cmp.Compare(a.pod.UID, b.pod.UID),
		)
	})
	return out
}

// nextRetry is when the next failed binding is to be tried again.
func (s *state) nextRetry() (at time.Time, ok bool) {
	for _, w := range s.waiting {
		if !w.binding && w.try && (!ok || w.retry.Before(at)) {
			at, ok = w.retry, true
		}
	}
	return at, ok
}
