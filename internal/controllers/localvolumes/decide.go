// SPDX-License-Identifier: Apache-2.0

package localvolumes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

const (
	// Class is the class that claims get who ask for none.
	Class = "wherry-local"
	// Provisioner is what classes name whose volumes are made here.
	Provisioner = "wherry.dev/local"

	// finalizer keeps a volume until its folder is gone, whoever deletes it first.
	finalizer = "wherry.dev/local-volume"
)

// class is wherry-local.
func class() *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: Class,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner:          Provisioner,
		ReclaimPolicy:        ptr.To(corev1.PersistentVolumeReclaimDelete),
		AllowVolumeExpansion: ptr.To(true),
		VolumeBindingMode:    ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	}
}

// nextForClaim decides whether a volume is to be made for a claim; refusal is why there will be none.
func nextForClaim(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, node string) (needed bool,
	refusal string) {
	if c.Spec.VolumeName != "" || c.DeletionTimestamp != nil || class == nil || class.Provisioner != Provisioner ||
		c.Annotations[storagehelpers.AnnStorageProvisioner] != Provisioner {
		return false, "" // the last is the binder's word that no volume there is will do
	}
	at, late := c.Annotations[storagehelpers.AnnSelectedNode], ptr.Deref(class.VolumeBindingMode,
		"") == storagev1.VolumeBindingWaitForFirstConsumer
	switch {
	case late && at == "":
		return false, ""
	case at != "" && at != node:
		return false,
			fmt.Sprintf("the pod goes to node %s, and class %s makes volumes on the server's machine, %s: give "+
				"the pod nodeSelector kubernetes.io/hostname=%s, or use another class", at, class.Name, node, node)
	case ptr.Deref(c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock:
		return false, fmt.Sprintf("class %s makes folders, no block devices: use volumeMode Filesystem, or create a "+
			"PersistentVolume of type local whose path is a device", class.Name)
	case c.Spec.DataSource != nil || c.Spec.DataSourceRef != nil:
		return false, fmt.Sprintf("class %s copies no other volumes and has no snapshots: leave dataSource and "+
			"dataSourceRef out", class.Name)
	case c.Spec.Selector != nil:
		return false, "claim.Spec.Selector is not supported for volumes that are made: leave selector out"
	case ptr.Deref(c.Spec.VolumeAttributesClassName, "") != "":
		return false, fmt.Sprintf("class %s has no volume attributes: leave volumeAttributesClassName out", class.Name)
	}
	return true, ""
}

// nameFor is what a claim's volume is called.
func nameFor(c *corev1.PersistentVolumeClaim) string { return "pvc-" + string(c.UID) }

// volumeFor is the volume of a claim.
func volumeFor(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, node,
	path string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: nameFor(c), Finalizers: []string{finalizer},
			Annotations: map[string]string{storagehelpers.AnnDynamicallyProvisioned: Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: requested(c)},
			AccessModes: c.Spec.AccessModes,
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace,
				Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion},
			PersistentVolumeReclaimPolicy: ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete),
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
			VolumeMode:                    c.Spec.VolumeMode,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}},
		},
	}
}

func requested(c *corev1.PersistentVolumeClaim) resource.Quantity {
	return c.Spec.Resources.Requests[corev1.ResourceStorage]
}

// todo is what is to be done with a volume.
type todo int

const (
	nothing todo = iota
	remove
	letGo // keep the folder, but not the object
	grow
)

// nextForVolume decides about a volume; claim is the one it belongs to, nil if that is gone.
func nextForVolume(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, node string) todo {
	if v.Annotations[storagehelpers.AnnDynamicallyProvisioned] != Provisioner || v.Spec.Local == nil || !on(v, node) {
		return nothing
	}
	deletes := v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	switch v.Status.Phase {
	case corev1.VolumeReleased, corev1.VolumeFailed:
		if deletes {
			return remove
		}
	case corev1.VolumeBound:
		if claim == nil || claim.Spec.VolumeName != v.Name || v.DeletionTimestamp != nil {
			return nothing
		}
		want, has := requested(claim), v.Spec.Capacity[corev1.ResourceStorage]
		shown := claim.Status.Capacity[corev1.ResourceStorage]
		if claim.Status.Phase == corev1.ClaimBound && (want.Cmp(has) > 0 || shown.Cmp(has) < 0) {
			return grow
		}
		return nothing
	}
	if v.DeletionTimestamp != nil { // a person deleted it
		return letGo
	}
	return nothing
}

// on reports whether a volume is on a node, as volumeFor says it.
func on(v *corev1.PersistentVolume, node string) bool {
	return storagehelpers.CheckNodeAffinity(v, map[string]string{corev1.LabelHostname: node}) == nil
}
