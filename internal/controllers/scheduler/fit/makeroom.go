// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// MakeRoom names the pods that have to go so that a node takes a critical pod, as Kubernetes' own node does: those of
// lower priority; as few guaranteed ones as possible, then as few burstable ones, then as few others; among equals
// those that request less. ok is false if the pod is not critical, if something other than room is missing, or if too
// little room can be made; then nobody is to go. n stays as it is.
func MakeRoom(pod *corev1.Pod, n *Node) (victims []*corev1.Pod, ok bool) {
	q := newQuestion(pod, Cluster{})
	if !podspec.Critical(pod) || q.unsuitable(n) != nil {
		return nil, false
	}
	missing := shortage{}
	for _, l := range q.lacks(n) {
		missing[l.name] = l.requested + l.used - l.capacity
	}
	lower := map[corev1.PodQOSClass][]*Placed{}
	for _, p := range n.pods {
		if podspec.Priority(p.Pod) < podspec.Priority(pod) {
			class := podspec.QOSClass(p.Pod)
			lower[class] = append(lower[class], p)
		}
	}
	// Each class gives what is missing even if all those that are cheaper to end were gone.
	classes := []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort}
	var gone []*Placed
	for i, class := range classes {
		left := missing.without(gone)
		for _, cheaper := range classes[i+1:] {
			left = left.without(lower[cheaper])
		}
		chosen, enough := left.cover(lower[class])
		if !enough {
			return nil, false
		}
		gone = append(gone, chosen...)
	}
	for _, p := range gone {
		victims = append(victims, p.Pod)
	}
	return victims, true
}

// shortage is what is missing of each resource, in the units of a lack. What is not missing is not in it.
type shortage map[corev1.ResourceName]int64

// has is how much of a resource goes with a pod.
func (p *Placed) has(name corev1.ResourceName) int64 {
	if name == corev1.ResourcePods {
		return 1
	}
	return count(name, p.requests[name])
}

// without is what is missing still when the pods are gone.
func (s shortage) without(pods []*Placed) shortage {
	left := maps.Clone(s)
	for name := range s {
		for _, p := range pods {
			left[name] -= p.has(name)
		}
	}
	maps.DeleteFunc(left, func(_ corev1.ResourceName, amount int64) bool { return amount <= 0 })
	return left
}

// cover chooses pods that have what is missing, each time the one after which the least is missing.
func (s shortage) cover(pods []*Placed) (chosen []*Placed, enough bool) {
	pods = slices.Clone(pods)
	for left := s; len(left) > 0; left = left.without(chosen[len(chosen)-1:]) {
		if len(pods) == 0 {
			return nil, false
		}
		next := slices.MinFunc(pods, func(a, b *Placed) int {
			return cmp.Or(cmp.Compare(left.after(a), left.after(b)),
				cmp.Compare(a.has(corev1.ResourceMemory), b.has(corev1.ResourceMemory)),
				cmp.Compare(a.has(corev1.ResourceCPU), b.has(corev1.ResourceCPU)),
				b.Pod.CreationTimestamp.Compare(a.Pod.CreationTimestamp.Time),
				strings.Compare(string(a.Pod.UID), string(b.Pod.UID)))
		})
		chosen = append(chosen, next)
		pods = slices.DeleteFunc(pods, func(p *Placed) bool { return p == next })
	}
	return chosen, true
}

// after measures what is missing when a pod is gone: each resource counts by the part of it that is, squared, so that a
// little of each is better than all of one.
func (s shortage) after(p *Placed) (sum float64) {
	for name, amount := range s {
		part := float64(max(0, amount-p.has(name))) / float64(amount)
		sum += part * part
	}
	return sum
}
