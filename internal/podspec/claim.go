// SPDX-License-Identifier: Apache-2.0

package podspec

import corev1 "k8s.io/api/core/v1"

// ClaimName is the PersistentVolumeClaim that a volume of a pod is, "" if it is of another kind. That of an ephemeral
// volume is made for the pod and named after both.
func ClaimName(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return pod.Name + "-" + v.Name
	}
	return ""
}

// ClaimNames are the claims of a pod, in the order of its volumes.
func ClaimNames(pod *corev1.Pod) (all []string) {
	for i := range pod.Spec.Volumes {
		if name := ClaimName(pod, &pod.Spec.Volumes[i]); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// OwnsClaim reports whether a claim is what a volume of the pod means: an ephemeral volume's is the pod's own, and
// another of the same name is not taken.
func OwnsClaim(pod *corev1.Pod, v *corev1.Volume, claim *corev1.PersistentVolumeClaim) bool {
	if v.Ephemeral == nil {
		return true
	}
	for _, o := range claim.OwnerReferences {
		if o.Controller != nil && *o.Controller && o.UID == pod.UID {
			return true
		}
	}
	return false
}
