// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	lists "k8s.io/apiserver/pkg/quota/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Count is what items take of a quota: an amount, be it 0, for everything the quota limits.
func Count(q *corev1.ResourceQuota, items []Item) corev1.ResourceList {
	names := lists.ResourceNames(q.Spec.Hard)
	used := corev1.ResourceList{}
	for _, name := range names {
		used[name] = *resource.NewQuantity(0, q.Spec.Hard.Name(name, resource.DecimalSI).Format)
	}
	for _, i := range items {
		if Matches(q, i) {
			used = lists.Add(used, lists.Mask(Usage(i), names))
		}
	}
	return used
}

// Same reports whether two counts are equal.
func Same(a, b corev1.ResourceList) bool { return lists.Equals(a, b) }

// UpToDate reports whether the status of a quota is that of its spec, so that what it says is used can be relied on.
func UpToDate(q *corev1.ResourceQuota) bool {
	if !lists.Equals(q.Spec.Hard, q.Status.Hard) {
		return false
	}
	for name := range q.Spec.Hard {
		if _, ok := q.Status.Used[name]; !ok {
			return false
		}
	}
	return true
}

// Charge is what is used of an up-to-date quota with one more object that matches, or why the object does not fit.
func Charge(q *corev1.ResourceQuota, i Item) (corev1.ResourceList, error) {
	if err := missing(q, i); err != nil {
		return nil, fmt.Errorf("failed quota: %s: %w", q.Name, err)
	}
	return add(q, lists.Mask(Usage(i), lists.ResourceNames(q.Spec.Hard)))
}

// Change is what is used of an up-to-date quota when an object that matches becomes another one, or why it does not
// fit. What it takes less is not taken off: nobody knows yet whether it is stored.
func Change(q *corev1.ResourceQuota, now, old Item) (corev1.ResourceList, error) {
	asked := lists.Mask(Usage(now), lists.ResourceNames(q.Spec.Hard))
	if Matches(q, old) {
		asked = lists.SubtractWithNonNegativeResult(asked, lists.Mask(Usage(old), lists.ResourceNames(asked)))
	}
	return add(q, asked)
}

// Grows reports whether an object takes more of anything than it did, or comes into the scope of other quotas.
func Grows(now, old Item) bool {
	claim, ok := now.Object.(*corev1.PersistentVolumeClaim)
	was, _ := old.Object.(*corev1.PersistentVolumeClaim)
	if ok && was != nil && !slices.Equal(attributesClasses(claim), attributesClasses(was)) {
		return true
	}
	return len(lists.RemoveZeros(lists.SubtractWithNonNegativeResult(Usage(now), Usage(old)))) > 0
}

func add(q *corev1.ResourceQuota, asked corev1.ResourceList) (corev1.ResourceList, error) {
	asked = lists.RemoveZeros(asked)
	total := lists.Add(q.Status.Used, asked)
	fits, over := lists.LessThanOrEqual(lists.Mask(total, lists.ResourceNames(asked)), q.Spec.Hard)
	if fits {
		return total, nil
	}
	return nil, fmt.Errorf("exceeded quota: %s, requested: %s, used: %s, limited: %s",
		q.Name, text(asked, over), text(q.Status.Used, over), text(q.Spec.Hard, over))
}

func text(list corev1.ResourceList, names []corev1.ResourceName) string {
	var parts []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		q := list[name]
		parts = append(parts, string(name)+"="+q.String())
	}
	return strings.Join(parts, ",")
}

// missing: where CPU or memory is limited, every container has to say what it takes, or the pod for all of them.
func missing(q *corev1.ResourceQuota, i Item) error {
	pod, ok := i.Object.(*corev1.Pod)
	if !ok {
		return nil
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		of, what, required := requirement(name)
		if !required {
			continue
		}
		if r := pod.Spec.Resources; r != nil {
			if _, ok := of(r)[what]; ok {
				continue
			}
		}
		var silent []string
		for ref := range podspec.Containers(&pod.Spec) {
			if _, ok := of(&ref.Container.Resources)[what]; !ok && ref.Kind != podspec.Ephemeral {
				silent = append(silent, ref.Container.Name)
			}
		}
		if len(silent) > 0 {
			all = append(all, fmt.Sprintf("%s for: %s", name, strings.Join(silent, ",")))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("must specify %s", strings.Join(all, "; "))
}

// requirement is where a container has to name which resource so that a quota's entry can be counted.
func requirement(name corev1.ResourceName) (of func(*corev1.ResourceRequirements) corev1.ResourceList, what corev1.ResourceName, ok bool) {
	requests := func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }
	limits := func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }
	switch name {
	case corev1.ResourceCPU, corev1.ResourceRequestsCPU:
		return requests, corev1.ResourceCPU, true
	case corev1.ResourceMemory, corev1.ResourceRequestsMemory:
		return requests, corev1.ResourceMemory, true
	case corev1.ResourceLimitsCPU:
		return limits, corev1.ResourceCPU, true
	case corev1.ResourceLimitsMemory:
		return limits, corev1.ResourceMemory, true
	}
	return nil, "", false
}
