// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// podAffinity honours the required terms of pod affinity and anti-affinity, those of pods already placed too.
func (q *question) podAffinity(n *Node) []string {
	var affinity, anti []corev1.PodAffinityTerm
	if a := q.pod.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			affinity = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		}
		if a.PodAntiAffinity != nil {
			anti = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		}
	}
	if !q.meets(affinity, n) {
		return []string{"node(s) didn't match pod affinity rules"}
	}
	for _, term := range anti {
		if in, _ := q.neighbours(q.pod, term, n); in {
			return []string{"node(s) didn't match pod anti-affinity rules"}
		}
	}
	if q.unwelcome(n) {
		return []string{"node(s) didn't satisfy existing pods anti-affinity rules"}
	}
	return nil
}

// meets is true when each term has a pod in the node's domain. The first of a group that wants to be together has
// none to be with: it may go anywhere the topology is known, if it matches its own terms.
func (q *question) meets(terms []corev1.PodAffinityTerm, n *Node) bool {
	missing, anywhere := false, false
	for _, term := range terms {
		if _, ok := n.Object.Labels[term.TopologyKey]; !ok {
			return false
		}
		in, some := q.neighbours(q.pod, term, n)
		missing = missing || !in
		anywhere = anywhere || some
	}
	if !missing {
		return true
	}
	return !anywhere &&
		!slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return !q.matches(q.pod, t, q.pod) })
}

// neighbours says whether a pod that matches a term of owner is in the node's domain, and whether there is one at all.
func (q *question) neighbours(owner *corev1.Pod, term corev1.PodAffinityTerm, n *Node) (in, anywhere bool) {
	domain, ok := n.Object.Labels[term.TopologyKey]
	for _, other := range q.cluster.Nodes {
		if other.Object == nil {
			continue
		}
		value, has := other.Object.Labels[term.TopologyKey]
		for _, p := range other.pods {
			if !has || !q.matches(owner, term, p.Pod) {
				continue
			}
			anywhere = true
			if ok && value == domain {
				return true, true
			}
		}
	}
	return false, anywhere
}

// unwelcome is true when a pod in the node's domain wants none of this pod's kind beside it.
func (q *question) unwelcome(n *Node) bool {
	for _, other := range q.cluster.Nodes {
		if other.Object == nil {
			continue
		}
		for _, p := range other.pods {
			a := p.Pod.Spec.Affinity
			if a == nil || a.PodAntiAffinity == nil {
				continue
			}
			for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				theirs, ok := other.Object.Labels[term.TopologyKey]
				if ok && theirs == n.Object.Labels[term.TopologyKey] && q.matches(p.Pod, term, q.pod) {
					return true
				}
			}
		}
	}
	return false
}

// matches says whether pod is one that a term of owner means.
func (q *question) matches(owner *corev1.Pod, term corev1.PodAffinityTerm, pod *corev1.Pod) bool {
	return q.inNamespaces(owner, term, pod.Namespace) && selects(term.LabelSelector, pod.Labels) &&
		alike(term.MatchLabelKeys, term.MismatchLabelKeys, owner.Labels, pod.Labels)
}

// alike says whether a pod with other labels is one that a pod with its own means by keys of labels: those that the two
// must have in common (matchLabelKeys, KEP-3243 and KEP-3633) and those that they must not (mismatchLabelKeys,
// KEP-3633). A key that the pod itself does not have means nothing.
func alike(match, mismatch []string, own, other map[string]string) bool {
	common := func(key string) (known, same bool) {
		mine, known := own[key]
		theirs, has := other[key]
		return known, has && theirs == mine
	}
	for _, key := range match {
		if known, same := common(key); known && !same {
			return false
		}
	}
	for _, key := range mismatch {
		if known, same := common(key); known && same {
			return false
		}
	}
	return true
}

func (q *question) inNamespaces(owner *corev1.Pod, term corev1.PodAffinityTerm, namespace string) bool {
	if term.NamespaceSelector != nil && selects(term.NamespaceSelector, q.cluster.NamespaceLabels[namespace]) {
		return true
	}
	if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
		return namespace == owner.Namespace
	}
	return slices.Contains(term.Namespaces, namespace)
}

// selects: no selector selects nothing, an empty one everything, one that cannot be read nothing.
func selects(s *metav1.LabelSelector, set map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}

// spread honours the topology spread constraints that forbid scheduling.
func (q *question) spread(n *Node) []string {
	for i := range q.pod.Spec.TopologySpreadConstraints {
		c := &q.pod.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		domain, ok := n.Object.Labels[c.TopologyKey]
		if !ok {
			return []string{"node(s) didn't match pod topology spread constraints (missing required label)"}
		}
		counts := q.domains(c)
		least := 0
		if int32(len(counts)) >= ptr.Deref(c.MinDomains, 1) {
			least = counts[domain]
			for _, n := range counts {
				least = min(least, n)
			}
		}
		self := 0
		if selects(c.LabelSelector, q.pod.Labels) {
			self = 1
		}
		if counts[domain]+self-least > int(c.MaxSkew) {
			return []string{"node(s) didn't match pod topology spread constraints"}
		}
	}
	return nil
}

// domains counts the matching pods in each domain that the pod might go to.
func (q *question) domains(c *corev1.TopologySpreadConstraint) map[string]int {
	counts := map[string]int{}
	for _, n := range q.cluster.Nodes {
		if n.Object == nil {
			continue
		}
		domain, ok := n.Object.Labels[c.TopologyKey]
		if !ok || !q.counts(c, n) {
			continue
		}
		counts[domain] += 0
		for _, p := range n.pods {
			if p.Pod.Namespace == q.pod.Namespace && p.Pod.DeletionTimestamp == nil &&
				selects(c.LabelSelector, p.Pod.Labels) && alike(c.MatchLabelKeys, nil, q.pod.Labels, p.Pod.Labels) {
				counts[domain]++
			}
		}
	}
	return counts
}

// counts says whether a node takes part in the spreading.
func (q *question) counts(c *corev1.TopologySpreadConstraint, n *Node) bool {
	if ptr.Deref(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyHonor &&
		len(q.nodeAffinity(n)) > 0 {
		return false
	}
	if ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyHonor &&
		len(q.taints(n)) > 0 {
		return false
	}
	return true
}
