// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestClaimObjects proves WL-15 and WL-16 as far as the API goes: a claim gets the default class, is kept while it may
// be in use, and grows only when it is bound and its class lets it.
func TestClaimObjects(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "default-" + ns,
		Annotations: map[string]string{
			"storageclass.kubernetes.io/is-default-class": "true"}}, Provisioner: "example.com/p"}
	if _, err := c.StorageV1().StorageClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer c.StorageV1().StorageClasses().Delete(t.Context(), class.Name, metav1.DeleteOptions{})
	all := c.CoreV1().PersistentVolumeClaims(ns)
	made, err := all.Create(t.Context(), sampleClaim("data"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Spec.StorageClassName == nil || *made.Spec.StorageClassName != class.Name ||
		*made.Spec.VolumeMode != corev1.PersistentVolumeFilesystem || made.Status.Phase != corev1.ClaimPending ||
		!slices.Contains(made.Finalizers, "kubernetes.io/pvc-protection") {
		t.Errorf("made: %+v", made)
	}
	grow := func(want string, is func(error) bool) {
		t.Helper()
		made.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		grown, err := all.Update(t.Context(), made, metav1.UpdateOptions{})
		switch {
		case want == "" && err != nil:
			t.Errorf("grow: %v", err)
		case want != "" && (!is(err) || !strings.Contains(err.Error(), want)):
			t.Errorf("grow: %v, want %q", err, want)
		case want == "":
			made = grown
		}
	}
	grow("spec is immutable after creation except resources.requests", apierrors.IsInvalid)
	made.Status.Phase = corev1.ClaimBound
	if made, err = all.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	grow("must support resize", apierrors.IsForbidden)
	class, err = c.StorageV1().StorageClasses().Get(t.Context(), class.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	class.AllowVolumeExpansion = new(true)
	if _, err := c.StorageV1().StorageClasses().Update(t.Context(), class, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	grow("", nil)
	if size := made.Spec.Resources.Requests[corev1.ResourceStorage]; size.String() != "2Gi" {
		t.Errorf("grown to %s", size.String())
	}
	volume, err := c.CoreV1().PersistentVolumes().Create(t.Context(), sampleVolume("v-"+ns), metav1.CreateOptions{})
	if err != nil || !slices.Contains(volume.Finalizers, "kubernetes.io/pv-protection") ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("volume: %+v, %v", volume, err)
	}
}

// TestClaimsAreCounted proves SC-14 and SC-16 for claims: quotas count them and what they ask for, also by class, and
// LimitRanges bound their size.
func TestClaimsAreCounted(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	hard := corev1.ResourceList{"persistentvolumeclaims": resource.MustParse("3"),
		"requests.storage": resource.MustParse("3Gi"),
		"slow.storageclass.storage.k8s.io/requests.storage": resource.MustParse("1Gi")}
	if _, err := c.CoreV1().ResourceQuotas(ns).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().LimitRanges(ns).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypePersistentVolumeClaim,
			Max:  corev1.ResourceList{"storage": resource.MustParse("2Gi")}}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, row := range []struct{ class, size, refusal string }{
		{"slow", "1Gi", ""},
		{"slow", "1Mi", "exceeded quota: q, requested: slow.storageclass.storage.k8s.io/requests.storage=1Mi"},
		{"fast", "3Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"},
		{"fast", "2Gi", ""},
		{"fast", "1Gi", "exceeded quota: q, requested: requests.storage=1Gi, used: requests.storage=3Gi"},
	} {
		claim := sampleClaim("c")
		claim.Name, claim.GenerateName, claim.Spec.StorageClassName = "", "c-", &row.class
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(row.size)
		_, err := c.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), claim, metav1.CreateOptions{})
		if (err == nil) != (row.refusal == "") || err != nil && !strings.Contains(err.Error(), row.refusal) {
			t.Errorf("claim %d: %v, want %q", i, err, row.refusal)
		}
	}
}
