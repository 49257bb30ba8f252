// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// VolumeFacts are what is known about a volume.
type VolumeFacts struct {
	Volume *corev1.PersistentVolume
	Claim  *corev1.PersistentVolumeClaim // the one of the volume's claimRef; nil: there is none of that name
}

// VolumeStep is what is to be done for a volume.
type VolumeStep struct {
	Phase  corev1.PersistentVolumePhase // "": it stays
	Why    string                       // status.message
	Unbind bool                         // it was meant for a claim that took another
	Claim  bool                         // its claim is to be looked at
	Tell   *Message
}

// NextForVolume decides about a volume.
func NextForVolume(f VolumeFacts) VolumeStep {
	v, ref := f.Volume, f.Volume.Spec.ClaimRef
	switch {
	case ref == nil:
		return VolumeStep{Phase: corev1.VolumeAvailable}
	case ref.UID == "": // kept for a claim by a person
		return VolumeStep{Phase: corev1.VolumeAvailable, Claim: f.Claim != nil}
	case f.Claim == nil || f.Claim.UID != ref.UID:
		return released(v)
	case f.Claim.Spec.VolumeName == "":
		s := VolumeStep{Claim: true}
		if storagehelpers.CheckVolumeModeMismatches(&f.Claim.Spec, &v.Spec) {
			s.Tell = warning("VolumeMismatch",
				"Cannot bind PersistentVolume to requested PersistentVolumeClaim %q due to incompatible volumeMode.",
				f.Claim.Name)
		}
		return s
	case f.Claim.Spec.VolumeName == v.Name:
		return VolumeStep{Phase: corev1.VolumeBound, Claim: v.Status.Phase != corev1.VolumeBound}
	}
	// The claim has another volume.
	switch {
	case metav1.HasAnnotation(v.ObjectMeta, storagehelpers.AnnDynamicallyProvisioned) &&
		v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		return released(v)
	case metav1.HasAnnotation(v.ObjectMeta, storagehelpers.AnnBoundByController):
		return VolumeStep{Unbind: true}
	}
	return VolumeStep{Phase: corev1.VolumeAvailable}
}

// released: the volume's claim is gone. A provisioner removes what it made; of others nobody knows how to.
func released(v *corev1.PersistentVolume) VolumeStep {
	if v.Status.Phase == corev1.VolumeFailed {
		return VolumeStep{}
	}
	made := metav1.HasAnnotation(v.ObjectMeta, storagehelpers.AnnDynamicallyProvisioned)
	switch policy := v.Spec.PersistentVolumeReclaimPolicy; {
	case policy == corev1.PersistentVolumeReclaimDelete && !made && v.Spec.CSI == nil:
		why := "no provisioner made this volume, so that none deletes it: remove its data by hand, then the " +
			"PersistentVolume; policy Retain says the same without an error"
		return VolumeStep{Phase: corev1.VolumeFailed, Why: why, Tell: warning("VolumeFailedDelete", "%s", why)}
	case policy == corev1.PersistentVolumeReclaimRecycle:
		why := "the policy Recycle, which Kubernetes has deprecated, is not carried out: remove the data by hand and " +
			"delete the volume's claimRef, or use the class wherry-local"
		return VolumeStep{Phase: corev1.VolumeFailed, Why: why, Tell: warning("VolumeFailedRecycle", "%s", why)}
	}
	return VolumeStep{Phase: corev1.VolumeReleased}
}
