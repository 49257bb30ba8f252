// SPDX-License-Identifier: Apache-2.0

package allot

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Tell words what the kernel gives as resources of a status: asked is what the spec says, want the amounts it comes to,
// and given what the kernel gives.
func Tell(asked corev1.ResourceRequirements, want, given Amounts) *corev1.ResourceRequirements {
	out := asked.DeepCopy()
	if want.Same(given) {
		return out
	}
	put := func(list corev1.ResourceList, name corev1.ResourceName, want, given int64, q resource.Quantity) {
		switch {
		case list == nil || want == given:
		case given == 0:
			delete(list, name)
		default:
			list[name] = q
		}
	}
	if Weight(want.Shares) != Weight(given.Shares) {
		put(out.Requests, corev1.ResourceCPU, want.Shares, given.Shares,
			*resource.NewMilliQuantity((given.Shares*1000+1023)/1024, resource.DecimalSI))
	}
	put(out.Limits, corev1.ResourceCPU, want.Quota, given.Quota,
		*resource.NewMilliQuantity(given.Quota*1000/Period, resource.DecimalSI))
	put(out.Limits, corev1.ResourceMemory, want.Memory, given.Memory,
		*resource.NewQuantity(given.Memory, resource.BinarySI))
	return out
}
