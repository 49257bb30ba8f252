// SPDX-License-Identifier: Apache-2.0

package limitrange

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// CheckClaim says which limits a claim of that size violates.
func CheckClaim(size resource.Quantity, ranges []corev1.LimitRange) (all []error) {
	for i := range ranges {
		for _, item := range ranges[i].Spec.Limits {
			if item.Type != corev1.LimitTypePersistentVolumeClaim {
				continue
			}
			if least, ok := item.Min[corev1.ResourceStorage]; ok && size.Cmp(least) < 0 {
				all = append(all, fmt.Errorf("minimum storage usage per PersistentVolumeClaim is %s, but request is %s",
					least.String(), size.String()))
			}
			if most, ok := item.Max[corev1.ResourceStorage]; ok && size.Cmp(most) > 0 {
				all = append(all, fmt.Errorf("maximum storage usage per PersistentVolumeClaim is %s, but request is %s",
					most.String(), size.String()))
			}
		}
	}
	return all
}
