// SPDX-License-Identifier: Apache-2.0

package claims

import (
	corev1 "k8s.io/api/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/wherryproject/wherry/internal/podspec"
)

// full reports whether a CSI driver would have more volumes on the node with the pod's than it takes.
func (v *Verdict) full(node string) bool {
	limits := v.world.Limits(node)
	if len(limits) == 0 {
		return false
	}
	has := map[string]map[string]bool{} // volumes by driver
	add := func(driver, volume string) bool {
		if has[driver] == nil {
			has[driver] = map[string]bool{}
		}
		first := !has[driver][volume]
		has[driver][volume] = true
		return first
	}
	for _, pod := range v.world.Pods(corev1.NamespaceAll) {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.Spec.NodeName != node || ended {
			continue
		}
		for _, name := range podspec.ClaimNames(pod) {
			if c := v.world.Claim(pod.Namespace, name); c != nil && c.Spec.VolumeName != "" {
				if pv := v.world.Volume(c.Spec.VolumeName); pv != nil && pv.Spec.CSI != nil {
					add(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
				}
			}
		}
	}
	over := func(driver string) bool {
		most, known := limits[driver]
		return known && len(has[driver]) > most
	}
	for _, pv := range v.fixed {
		if s := pv.Spec.CSI; s != nil && add(s.Driver, s.VolumeHandle) && over(s.Driver) {
			return true
		}
	}
	for _, c := range v.late { // whose volume will be made by the driver that the class names
		class := v.world.Class(storagehelpers.GetPersistentVolumeClaimClass(c))
		if class != nil && add(class.Provisioner, "claim "+c.Name) && over(class.Provisioner) {
			return true
		}
	}
	return false
}
