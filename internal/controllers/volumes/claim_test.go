// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

func claim(class string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "u",
		Annotations: map[string]string{}}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: resource.MustParse("2Gi")}}}}
	for _, f := range change {
		f(c)
	}
	return c
}

func volume(name, class, size string, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec: corev1.PersistentVolumeSpec{StorageClassName: class,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
	for _, f := range change {
		f(v)
	}
	return v
}

func classes() []*storagev1.StorageClass {
	now, later := storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	return []*storagev1.StorageClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "local", Annotations: map[string]string{
			"storageclass.kubernetes.io/is-default-class": "true"}}, Provisioner: "wherry.dev/local",
			VolumeBindingMode: &later},
		{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "example.com", VolumeBindingMode: &now},
		{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}, Provisioner: storagehelpers.NotSupportedProvisioner,
			VolumeBindingMode: &now},
	}
}

func forClaim(uid string) func(*corev1.PersistentVolume) {
	return func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "data", UID: "u"}
		if uid != "u" {
			v.Spec.ClaimRef.UID, v.Spec.ClaimRef.Name = "other", "other"
		}
	}
}

func asks(volume string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
}

func had(c *corev1.PersistentVolumeClaim) { c.Annotations[storagehelpers.AnnBindCompleted] = "yes" }

func selected(c *corev1.PersistentVolumeClaim) { c.Annotations[storagehelpers.AnnSelectedNode] = "n" }

// TestNextForClaim proves WL-15, WL-17 and WL-24: which volume a claim gets, what it waits for, and what it is told.
func TestNextForClaim(t *testing.T) {
	noClass := func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }
	for name, row := range map[string]struct {
		claim   *corev1.PersistentVolumeClaim
		volumes []*corev1.PersistentVolume
		bind    string
		phase   corev1.PersistentVolumeClaimPhase
		class   string
		maker   string
		tell    string
	}{
		"the smallest that fits": {claim: claim(""), volumes: []*corev1.PersistentVolume{volume("big", "", "9Gi"),
			volume("small", "", "1Gi"), volume("right", "", "3Gi"), volume("taken", "", "2Gi", forClaim("x"))},
			bind: "right"},
		"one kept for it": {claim: claim(""), volumes: []*corev1.PersistentVolume{volume("right", "", "2Gi"),
			volume("kept", "", "9Gi", forClaim("u"))}, bind: "kept"},
		"other access mode": {claim: claim("", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}), volumes: []*corev1.PersistentVolume{volume("v", "", "2Gi")}, phase: "Pending",
			tell: "no storage class is set; there are the classes: by-hand, fast, local (default)"},
		"a default came later": {claim: claim("", noClass), phase: "Pending", class: "local"},
		"unknown class": {claim: claim("slow"), phase: "Pending",
			tell: `"slow" not found; there are the classes: by-hand, fast, local (default)`},
		"waits for its consumer": {claim: claim("local"), phase: "Pending", tell: "waiting for first consumer"},
		"its consumer is known": {claim: claim("local", selected), phase: "Pending", maker: "wherry.dev/local",
			tell: "Waiting for a volume to be created"},
		"told once": {claim: claim("fast", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[storagehelpers.AnnStorageProvisioner] = "example.com"
		}), phase: "Pending", maker: "example.com"},
		"nobody makes it": {claim: claim("by-hand"), phase: "Pending",
			tell: "the class makes none: create a PersistentVolume"},
		"asks for one": {claim: claim("", asks("v")),
			volumes: []*corev1.PersistentVolume{volume("v", "", "2Gi")}, bind: "v"},
		"asks for none there": {claim: claim("", asks("v")), phase: "Pending", tell: "does not exist yet"},
		"asks for a small one": {claim: claim("", asks("v")),
			volumes: []*corev1.PersistentVolume{volume("v", "", "1Gi")}, phase: "Pending",
			tell: "requested PV is too small"},
		"asks for another's": {claim: claim("", asks("v")),
			volumes: []*corev1.PersistentVolume{volume("v", "", "2Gi", forClaim("x"))}, phase: "Pending",
			tell: "already bound to a different claim"},
		"bound": {claim: claim("", asks("v"), had),
			volumes: []*corev1.PersistentVolume{volume("v", "", "2Gi", forClaim("u"))}, bind: "v"},
		"half bound": {claim: claim("local"), volumes: []*corev1.PersistentVolume{volume("v", "local", "2Gi",
			forClaim("u"))}, bind: "v"},
		"its volume is gone": {claim: claim("", asks("v"), had), phase: "Lost",
			tell: "has lost its PersistentVolume"},
		"its volume has another": {claim: claim("", asks("v"), had),
			volumes: []*corev1.PersistentVolume{volume("v", "", "2Gi", forClaim("x"))}, phase: "Lost",
			tell: "Two claims are bound to the same volume"},
	} {
		t.Run(name, func(t *testing.T) {
			f := ClaimFacts{Claim: row.claim, Volumes: row.volumes, Classes: classes()}
			for _, v := range row.volumes {
				if v.Name == row.claim.Spec.VolumeName {
					f.Volume = v
				}
			}
			s := NextForClaim(f)
			if (s.Bind == nil) != (row.bind == "") || s.Bind != nil && s.Bind.Name != row.bind {
				t.Errorf("bind %v, want %q", s.Bind, row.bind)
			}
			if s.Phase != row.phase || s.Class != row.class || s.Provisioner != row.maker {
				t.Errorf("%+v, want %+v", s, row)
			}
			if (s.Tell == nil) != (row.tell == "") || s.Tell != nil && !strings.Contains(s.Tell.Text, row.tell) {
				t.Errorf("tells %+v, want %q", s.Tell, row.tell)
			}
		})
	}
}

// TestNextForVolume proves WL-15: what becomes of a volume with and without its claim, by its policy.
func TestNextForVolume(t *testing.T) {
	policy := func(p corev1.PersistentVolumeReclaimPolicy) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = p }
	}
	made := func(v *corev1.PersistentVolume) { v.Annotations[storagehelpers.AnnDynamicallyProvisioned] = "p" }
	byBinder := func(v *corev1.PersistentVolume) { v.Annotations[storagehelpers.AnnBoundByController] = "yes" }
	mine := forClaim("u")
	for name, row := range map[string]struct {
		volume *corev1.PersistentVolume
		claim  *corev1.PersistentVolumeClaim
		want   VolumeStep
		tell   string
	}{
		"free": {volume: volume("v", "", "2Gi"), want: VolumeStep{Phase: "Available"}},
		"bound": {volume: volume("v", "", "2Gi", mine), claim: claim("", asks("v")),
			want: VolumeStep{Phase: "Bound", Claim: true}},
		"its claim knows not": {volume: volume("v", "", "2Gi", mine), claim: claim(""), want: VolumeStep{Claim: true}},
		"retained": {volume: volume("v", "", "2Gi", mine, policy("Retain")),
			want: VolumeStep{Phase: "Released"}},
		"made, to be deleted": {volume: volume("v", "", "2Gi", mine, policy("Delete"), made),
			want: VolumeStep{Phase: "Released"}},
		"by hand, to be deleted": {volume: volume("v", "", "2Gi", mine, policy("Delete")),
			want: VolumeStep{Phase: "Failed"}, tell: "no provisioner made this volume"},
		"recycled": {volume: volume("v", "", "2Gi", mine, policy("Recycle")),
			want: VolumeStep{Phase: "Failed"}, tell: "deprecated"},
		"claim took another": {volume: volume("v", "", "2Gi", mine, byBinder), claim: claim("", asks("w")),
			want: VolumeStep{Unbind: true}},
		"a person meant it": {volume: volume("v", "", "2Gi", mine), claim: claim("", asks("w")),
			want: VolumeStep{Phase: "Available"}},
		"made for it in vain": {volume: volume("v", "", "2Gi", mine, made, policy("Delete")),
			claim: claim("", asks("w")), want: VolumeStep{Phase: "Released"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := NextForVolume(VolumeFacts{Volume: row.volume, Claim: row.claim})
			if (got.Tell == nil) != (row.tell == "") || got.Tell != nil && !strings.Contains(got.Tell.Text, row.tell) {
				t.Errorf("tells %+v", got.Tell)
			}
			got.Tell, got.Why = nil, ""
			if got != row.want {
				t.Errorf("%+v, want %+v", got, row.want)
			}
		})
	}
}

// TestUses proves WL-15: a claim is kept while a pod on a node has it.
func TestUses(t *testing.T) {
	c := claim("")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "p"}, Spec: corev1.PodSpec{NodeName: "n",
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}}
	if !uses(pod, c) {
		t.Error("a pod on a node does not keep its claim")
	}
	pod.Spec.NodeName = ""
	if uses(pod, c) {
		t.Error("a pod without a node keeps its claim")
	}
	yes := true
	own := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "web-e",
		OwnerReferences: []metav1.OwnerReference{{UID: "p", Controller: &yes}}}}
	pod.Spec.NodeName, pod.Spec.Volumes[0] = "n", corev1.Volume{Name: "e", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{}}}
	if !uses(pod, own) {
		t.Error("a pod does not keep the claim of its ephemeral volume")
	}
	now, zero := metav1.Now(), int64(0)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &zero
	if uses(pod, own) {
		t.Error("a pod of which nothing runs keeps the claim of its ephemeral volume")
	}
}
