// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePodAnnotations holds the rules of those annotations that mean something for a Pod. Their form and
// total size (256 KiB) is the business of the general rules of metadata.
func validatePodAnnotations(pod *corev1.Pod, path *field.Path) (all errs) {
	if _, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; ok && pod.Spec.NodeName == "" {
		all = append(all, field.Invalid(path.Key(corev1.MirrorPodAnnotationKey), "",
			"must set spec.nodeName if mirror pod annotation is set"))
	}
	if cost, ok := pod.Annotations[corev1.PodDeletionCost]; ok {
		if !isDeletionCost(cost) {
			all = append(all, field.Invalid(path.Key(corev1.PodDeletionCost), cost, "must be a 32bit integer"))
		}
	}
	all = append(all, validateDebugAnnotations(pod, path)...)
	for _, key := range slices.Sorted(maps.Keys(pod.Annotations)) {
		name, ok := strings.CutPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix)
		if !ok {
			continue
		}
		profile := pod.Annotations[key]
		if _, found := FindContainer(&pod.Spec, name); !found {
			all = append(all, field.Invalid(path.Key(key), name, "container not found"))
		}
		if !isAppArmorAnnotation(profile) {
			all = append(all, field.Invalid(path.Key(key), profile,
				"invalid AppArmor profile name: "+strconv.Quote(profile)))
		}
	}
	return all
}

// isDeletionCost: a number written in the shortest way, without plus sign or leading zeros.
func isDeletionCost(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && strconv.FormatInt(n, 10) == s
}

func isAppArmorAnnotation(profile string) bool {
	switch profile {
	case "", corev1.DeprecatedAppArmorBetaProfileRuntimeDefault, corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return true
	}
	return strings.HasPrefix(profile, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
}
