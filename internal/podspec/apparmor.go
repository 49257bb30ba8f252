// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// FormerAppArmor gives containers of a new pod the AppArmor profiles that it names in annotations, as was done before
// there were fields for them (KEP-24). A container with a field keeps that; what is no profile is left to validation.
func FormerAppArmor(pod *corev1.Pod) {
	ofPod := podSC(&pod.Spec).AppArmorProfile
	for ref := range Containers(&pod.Spec) {
		c := ref.Container
		profile := formerProfile(pod.Annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name])
		if profile == nil || containerSC(ref).AppArmorProfile != nil || equality.Semantic.DeepEqual(profile, ofPod) ||
			len(appArmor(profile, &field.Path{})) > 0 {
			continue
		}
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		c.SecurityContext.AppArmorProfile = profile
	}
}

// formerProfile is what an annotation says; nil: nothing.
func formerProfile(annotation string) *corev1.AppArmorProfile {
	switch annotation {
	case corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	}
	if name, ok := strings.CutPrefix(annotation, corev1.DeprecatedAppArmorBetaProfileNamePrefix); ok {
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
	}
	return nil
}
