// SPDX-License-Identifier: Apache-2.0

package static

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Key is what there is one static pod of at a time: namespace/name.
func Key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// Want puts the pods of all manifests together. Of two with one name the first stands; the others are returned as
// doubles. Manifests are in their order.
func Want(manifests [][]*corev1.Pod) (wanted map[string]*corev1.Pod, doubles []*corev1.Pod) {
	wanted = map[string]*corev1.Pod{}
	for _, pods := range manifests {
		for _, p := range pods {
			if wanted[Key(p)] != nil {
				doubles = append(doubles, p)
				continue
			}
			wanted[Key(p)] = p
		}
	}
	return wanted, doubles
}

// Next decides, by their keys, which of the pods that are wanted begin, and which of those that are there end. One
// that is there ends before another of its name begins; of those that were wanted meanwhile only the last begins. Again
// names pods whose manifest was taken away and put back: they end, too, and begin anew.
func Next(there, wanted map[string]*corev1.Pod, again map[types.UID]bool) (begin, end []string) {
	for _, k := range slices.Sorted(maps.Keys(wanted)) {
		if there[k] == nil {
			begin = append(begin, k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(there)) {
		have, want := there[k], wanted[k]
		if have.DeletionTimestamp != nil {
			continue
		}
		if want == nil || want.UID != have.UID || again[have.UID] {
			end = append(end, k)
		}
	}
	return begin, end
}

// Ending is a pod that is to end, from now on, within the grace that it asks for.
func Ending(pod *corev1.Pod, now metav1.Time) *corev1.Pod {
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	out := *pod
	by := metav1.Unix(now.Unix()+grace, 0)
	out.DeletionTimestamp, out.DeletionGracePeriodSeconds = &by, &grace
	return &out
}

// Anew is a pod's status when the same pod begins once more. Like one that has lost its sandbox it keeps count of its
// restarts (PL-39), if its containers are to be restarted at all.
func Anew(pod *corev1.Pod, last *corev1.PodStatus) corev1.PodStatus {
	if last == nil || pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return corev1.PodStatus{Phase: corev1.PodPending}
	}
	status := *last.DeepCopy()
	status.Phase, status.Reason, status.Message, status.StartTime = corev1.PodPending, "", "", nil
	status.Conditions, status.PodIP, status.PodIPs = nil, "", nil
	return status
}
