// SPDX-License-Identifier: Apache-2.0

package plan

import corev1 "k8s.io/api/core/v1"

// mounts tells a container's mounts as they are made: of one that is read-only, whether what is mounted below it is so,
// too (PL-21).
func (v *view) mounts(of []corev1.VolumeMount) (all []corev1.VolumeMountStatus) {
	for i := range of {
		s := corev1.VolumeMountStatus{Name: of[i].Name, MountPath: of[i].MountPath, ReadOnly: of[i].ReadOnly}
		if s.ReadOnly {
			mode := corev1.RecursiveReadOnlyDisabled
			if want := of[i].RecursiveReadOnly; want != nil &&
				(*want == corev1.RecursiveReadOnlyEnabled ||
					*want == corev1.RecursiveReadOnlyIfPossible && v.Node.RecursiveReadOnly) {
				mode = corev1.RecursiveReadOnlyEnabled
			}
			s.RecursiveReadOnly = &mode
		}
		all = append(all, s)
	}
	return all
}
