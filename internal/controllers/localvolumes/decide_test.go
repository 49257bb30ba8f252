// SPDX-License-Identifier: Apache-2.0

package localvolumes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

func claim(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "u",
		Annotations: map[string]string{storagehelpers.AnnStorageProvisioner: Provisioner,
			storagehelpers.AnnSelectedNode: "here"}}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: resource.MustParse("2Gi")}}}}
	for _, f := range change {
		f(c)
	}
	return c
}

// TestNextForClaim proves WL-15: for which claims a volume is made, and what those are told that get none.
func TestNextForClaim(t *testing.T) {
	at := func(node string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Annotations[storagehelpers.AnnSelectedNode] = node }
	}
	other := class()
	other.Provisioner = "example.com"
	for name, row := range map[string]struct {
		claim   *corev1.PersistentVolumeClaim
		class   *storagev1.StorageClass
		needed  bool
		refusal string
	}{
		"needed":          {claim(), class(), true, ""},
		"another's class": {claim(), other, false, ""},
		"no class":        {claim(), nil, false, ""},
		"no node yet":     {claim(at("")), class(), false, ""},
		"another node":    {claim(at("there")), class(), false, "nodeSelector kubernetes.io/hostname=here"},
		"bound": {claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }), class(), false,
			""},
		"a fitting volume may be there": {claim(func(c *corev1.PersistentVolumeClaim) {
			delete(c.Annotations, storagehelpers.AnnStorageProvisioner)
		}), class(), false, ""},
		"block": {claim(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
		}), class(), false, "use volumeMode Filesystem"},
		"a copy": {claim(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{}
		}), class(), false, "leave dataSource and dataSourceRef out"},
		"a selector": {claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }),
			class(), false, "leave selector out"},
	} {
		needed, refusal := nextForClaim(row.claim, row.class, "here")
		if needed != row.needed || (refusal == "") != (row.refusal == "") || !strings.Contains(refusal, row.refusal) {
			t.Errorf("%s: %v, %q", name, needed, refusal)
		}
	}
}

// TestNextForVolume proves WL-15 and WL-16: a volume's folder goes with the claim if that is the policy, stays
// otherwise, and grows with the claim.
func TestNextForVolume(t *testing.T) {
	bound := claim(func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Status.Phase = "pvc-u", corev1.ClaimBound
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	})
	larger := bound.DeepCopy()
	larger.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("3Gi")
	in := func(phase corev1.PersistentVolumePhase, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		v := volumeFor(claim(), class(), "here", "/data/volumes/pvc-u")
		v.Status.Phase = phase
		for _, f := range change {
			f(v)
		}
		return v
	}
	retain := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	deleted := func(v *corev1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} }
	grown := func(v *corev1.PersistentVolume) {
		v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}
	}
	for name, row := range map[string]struct {
		volume *corev1.PersistentVolume
		claim  *corev1.PersistentVolumeClaim
		want   todo
	}{
		"new":                           {in(corev1.VolumePending), claim(), nothing},
		"bound":                         {in(corev1.VolumeBound), bound, nothing},
		"its claim wants more":          {in(corev1.VolumeBound), larger, grow},
		"grown, and not said":           {in(corev1.VolumeBound, grown), larger, grow},
		"released":                      {in(corev1.VolumeReleased), nil, remove},
		"released, being deleted":       {in(corev1.VolumeReleased, deleted), nil, remove},
		"retained":                      {in(corev1.VolumeReleased, retain), nil, nothing},
		"retained, deleted by a person": {in(corev1.VolumeReleased, retain, deleted), nil, letGo},
		"bound, deleted by a person":    {in(corev1.VolumeBound, deleted), bound, nothing},
		"another's": {in(corev1.VolumeReleased, func(v *corev1.PersistentVolume) {
			v.Annotations[storagehelpers.AnnDynamicallyProvisioned] = "x"
		}), nil, nothing},
	} {
		if got := nextForVolume(row.volume, row.claim, "here"); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
		if got := nextForVolume(row.volume, row.claim, "there"); got != nothing {
			t.Errorf("%s, on another node: %d", name, got)
		}
	}
}
