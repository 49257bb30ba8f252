// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Limited reports whether a pod has a limit that only measuring can hold it to: the size of an emptyDir on disk, or
// ephemeral-storage of a container.
func Limited(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if e := pod.Spec.Volumes[i].EmptyDir; e != nil && e.Medium == corev1.StorageMediumDefault &&
			e.SizeLimit != nil && e.SizeLimit.Sign() > 0 {
			return true
		}
	}
	for ref := range podspec.Containers(&pod.Spec) {
		if _, ok := ref.Container.Resources.Limits[corev1.ResourceEphemeralStorage]; ok {
			return true
		}
	}
	return false
}

// OverLimit says which limit on local storage a pod has passed, in the kubelet's words, or "". The use of debug
// containers and of image execs counts to the pod's sum (EC-18).
func OverLimit(c Candidate) string {
	for _, v := range c.Pod.Spec.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.Medium != corev1.StorageMediumDefault || v.EmptyDir.SizeLimit == nil {
			continue
		}
		if limit := v.EmptyDir.SizeLimit; limit.Sign() > 0 && c.Volumes[v.Name] > limit.Value() {
			return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit.String())
		}
	}
	if limit, ok := podspec.EffectiveLimits(c.Pod)[corev1.ResourceEphemeralStorage]; ok && limit.Sign() > 0 &&
		c.Disk > limit.Value() {
		return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ",
			limit.String()) + debugShare(c)
	}
	for _, u := range c.Containers {
		ref, known := podspec.FindContainer(&c.Pod.Spec, u.Name)
		if !known || u.Exec {
			continue
		}
		if limit, ok := ref.Container.Resources.Limits[corev1.ResourceEphemeralStorage]; ok && limit.Sign() > 0 &&
			u.Disk > limit.Value() {
			return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", u.Name, limit.String())
		}
	}
	return ""
}

// debugShare says what of a pod's use on disk is that of debugging.
func debugShare(c Candidate) string {
	var b strings.Builder
	for _, u := range c.Containers {
		ref, known := podspec.FindContainer(&c.Pod.Spec, u.Name)
		switch {
		case u.Disk == 0:
		case u.Exec:
			fmt.Fprintf(&b, "An image exec into the pod was using %s of it. ", quantity(NodeFsAvailable, u.Disk))
		case known && ref.Kind == podspec.Ephemeral:
			fmt.Fprintf(&b, "Debug container %s was using %s of it. ", u.Name, quantity(NodeFsAvailable, u.Disk))
		}
	}
	return b.String()
}
