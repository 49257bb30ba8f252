// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Grows reports whether the node has to make a volume larger: its driver's controller has done so, and its claim does
// not show it yet.
func Grows(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) (resource.Quantity, bool) {
	size, has := pv.Spec.Capacity[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || has.IsZero() || size.Cmp(has) <= 0 {
		return size, false
	}
	// What was refused for good is not tried again until somebody asks for something else.
	return size, claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] !=
		corev1.PersistentVolumeClaimNodeResizeInfeasible
}

// Growing is the status of a claim while the node's driver is asked, or after it has refused for good.
func Growing(claim *corev1.PersistentVolumeClaim,
	state corev1.ClaimResourceStatus) *corev1.PersistentVolumeClaim {
	out := claim.DeepCopy()
	if out.Status.AllocatedResourceStatuses == nil {
		out.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{}
	}
	out.Status.AllocatedResourceStatuses[corev1.ResourceStorage] = state
	return out
}

// Grown is the status of a claim whose volume has the size.
func Grown(claim *corev1.PersistentVolumeClaim, size resource.Quantity) *corev1.PersistentVolumeClaim {
	out := claim.DeepCopy()
	if out.Status.Capacity == nil {
		out.Status.Capacity = corev1.ResourceList{}
	}
	out.Status.Capacity[corev1.ResourceStorage] = size
	out.Status.Conditions = slices.DeleteFunc(out.Status.Conditions,
		func(c corev1.PersistentVolumeClaimCondition) bool {
			switch c.Type {
			case corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
				corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError:
				return true
			}
			return false
		})
	delete(out.Status.AllocatedResourceStatuses, corev1.ResourceStorage)
	if len(out.Status.AllocatedResourceStatuses) == 0 {
		out.Status.AllocatedResourceStatuses = nil
	}
	return out
}
