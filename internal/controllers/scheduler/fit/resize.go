// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// PlaceAllocated takes in a pod as its node does, with what was set aside for it: what it asks for beyond that does not
// count yet, and its status is what this very node has reported.
func PlaceAllocated(pod, allocated *corev1.Pod) *Placed {
	return &Placed{Pod: pod, requests: podspec.EffectiveRequests(&corev1.Pod{Spec: allocated.Spec}),
		ports: hostPorts(pod)}
}

// Wanted is a pod that asks for other resources than its node has set aside for it.
type Wanted struct {
	Pod       *corev1.Pod // with what it asks for
	Allocated *corev1.Pod // with what is set aside
	Since     time.Time   // when it was first put off; zero if it was not yet
}

// Resize judges a pod that asks for other resources, on its node, and returns nil if they can be set aside. It is
// infeasible if the node does not have as much at all, else deferred until there is room.
func Resize(w Wanted, n *Node) *Misfit {
	had, here := n.pods[w.Pod.UID]
	n.Remove(w.Pod.UID)
	defer func() {
		if here {
			n.Add(had)
		}
	}()
	q := &question{pod: w.Pod, need: PlaceAllocated(w.Pod, w.Pod)}
	was := podspec.EffectiveRequests(&corev1.Pod{Spec: w.Allocated.Spec})
	lacks := slices.DeleteFunc(q.lacks(n), func(l lack) bool {
		had, need := was[l.name], q.need.requests[l.name]
		return l.name == corev1.ResourcePods || need.Cmp(had) <= 0 // it is here, and takes no more of that
	})
	if len(lacks) == 0 {
		return nil
	}
	for _, l := range lacks {
		if l.requested > l.capacity {
			return &Misfit{Reason: corev1.PodReasonInfeasible, Resource: string(l.name), Message: fmt.Sprintf(
				"Node didn't have enough capacity: %s, requested: %d, capacity: %d", l.name, l.requested, l.capacity)}
		}
	}
	l := lacks[0]
	return &Misfit{Reason: corev1.PodReasonDeferred, Resource: string(l.name), Message: fmt.Sprintf(
		"Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", l.name, l.requested, l.used,
		l.capacity)}
}

// InTurn sorts pods that ask for other resources in the order in which they are judged, as Kubernetes' own node does:
// first those that do not ask for more, then by priority, guaranteed ones before others, and by how long they have
// waited.
func InTurn(all []Wanted) {
	slices.SortStableFunc(all, func(p, q Wanted) int {
		return cmp.Or(cmp.Compare(rank(!p.grows()), rank(!q.grows())),
			cmp.Compare(priority(q.Pod), priority(p.Pod)),
			cmp.Compare(rank(podspec.QOSClass(p.Pod) == corev1.PodQOSGuaranteed),
				rank(podspec.QOSClass(q.Pod) == corev1.PodQOSGuaranteed)),
			cmp.Compare(rank(!p.Since.IsZero()), rank(!q.Since.IsZero())), p.Since.Compare(q.Since),
			cmp.Compare(p.Pod.UID, q.Pod.UID))
	})
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

func (w Wanted) grows() bool {
	now, was := podspec.EffectiveRequests(&corev1.Pod{Spec: w.Pod.Spec}),
		podspec.EffectiveRequests(&corev1.Pod{Spec: w.Allocated.Spec})
	return now.Cpu().Cmp(*was.Cpu()) > 0 || now.Memory().Cmp(*was.Memory()) > 0
}
