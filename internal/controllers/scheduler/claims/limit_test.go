// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// WL-17: a node takes no more volumes of a driver than that says. Volumes "1" and "2" are used there, by pods that run.
func TestLimits(t *testing.T) {
	late := storagev1.VolumeBindingWaitForFirstConsumer
	for name, row := range map[string]struct {
		claim  string
		limits map[string]int
		full   bool
	}{
		"one more fits":          {claim: "3", limits: map[string]int{"d": 3}},
		"one more is too many":   {claim: "3", limits: map[string]int{"d": 2}, full: true},
		"one that is there":      {claim: "2", limits: map[string]int{"d": 2}},
		"one that is to be made": {claim: "new", limits: map[string]int{"d": 2}, full: true},
		"no limit":               {claim: "3"},
		"of another driver":      {claim: "3", limits: map[string]int{"e": 0}},
	} {
		w := World{
			Claim: func(_, name string) *corev1.PersistentVolumeClaim {
				class := "made"
				c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name,
					Annotations: map[string]string{}}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}}
				if name != "new" {
					c.Spec.VolumeName, c.Annotations[storagehelpers.AnnBindCompleted] = name, "yes"
				}
				return c
			},
			Volume: func(name string) *corev1.PersistentVolume {
				return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name},
					Spec: corev1.PersistentVolumeSpec{
						PersistentVolumeSource: corev1.PersistentVolumeSource{
							CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: name}}}}
			},
			Class: func(string) *storagev1.StorageClass {
				return &storagev1.StorageClass{Provisioner: "d", VolumeBindingMode: &late}
			},
			Volumes: func() []*corev1.PersistentVolume { return nil },
			Pods: func(string) (out []*corev1.Pod) {
				for _, c := range []string{"1", "2", "2", "ended", "elsewhere"} {
					p := pod(c)
					p.Spec.NodeName = "n"
					switch c {
					case "ended":
						p.Status.Phase = corev1.PodSucceeded
					case "elsewhere":
						p.Spec.NodeName = "other"
					}
					out = append(out, p)
				}
				return out
			},
			Limits: func(string) map[string]int { return row.limits },
		}
		v := Judge(pod(row.claim), w)
		if v.Refusal != "" {
			t.Fatal(name, v.Refusal)
		}
		if why := v.Fits(node("n")); (why == "node(s) exceed max volume count") != row.full {
			t.Errorf("%s: %q", name, why)
		}
	}
}
