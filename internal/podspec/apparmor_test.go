// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// PL-29, PL-15: an AppArmor profile that is named as of old, in an annotation, confines; a field goes before it.
func TestFormerAppArmor(t *testing.T) {
	const prefix = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix
	unconfined := &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	for name, row := range map[string]struct {
		annotation string
		field      *corev1.AppArmorProfile
		ofPod      *corev1.AppArmorProfile
		want       string
	}{
		"default":            {annotation: "runtime/default", want: "RuntimeDefault"},
		"unconfined":         {annotation: "unconfined", want: "Unconfined"},
		"of the machine":     {annotation: "localhost/deny-write", want: "Localhost deny-write"},
		"a field goes first": {annotation: "runtime/default", field: unconfined, want: "Unconfined"},
		"as the pod's":       {annotation: "unconfined", ofPod: unconfined},
		"other than pod's":   {annotation: "runtime/default", ofPod: unconfined, want: "RuntimeDefault"},
		"no profile":         {annotation: "nonsense"},
		"no name":            {annotation: "localhost/"},
		"none":               {},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "other"}}, Containers: []corev1.Container{{Name: "c"}}}}
		if row.annotation != "" {
			pod.Annotations = map[string]string{prefix + "c": row.annotation}
		}
		if row.field != nil {
			pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AppArmorProfile: row.field}
		}
		if row.ofPod != nil {
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{AppArmorProfile: row.ofPod}
		}
		FormerAppArmor(pod)
		got := ""
		if sc := pod.Spec.Containers[0].SecurityContext; sc != nil && sc.AppArmorProfile != nil {
			got = string(sc.AppArmorProfile.Type)
			if sc.AppArmorProfile.LocalhostProfile != nil {
				got += " " + *sc.AppArmorProfile.LocalhostProfile
			}
		}
		if got != row.want || pod.Spec.InitContainers[0].SecurityContext != nil {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
