// SPDX-License-Identifier: Apache-2.0

package refs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/env"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Names lists the ConfigMaps and Secrets of its namespace that a pod names anywhere: environment, volumes, pull
// secrets; sorted, each once. (Pure.)
func Names(pod *corev1.Pod) (configMaps, secrets []string) {
	for ref := range podspec.Containers(&pod.Spec) {
		cms, ss := env.References(ref.Container)
		configMaps, secrets = append(configMaps, cms...), append(secrets, ss...)
	}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.ConfigMap != nil:
			configMaps = append(configMaps, v.ConfigMap.Name)
		case v.Secret != nil:
			secrets = append(secrets, v.Secret.SecretName)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil {
					configMaps = append(configMaps, s.ConfigMap.Name)
				}
				if s.Secret != nil {
					secrets = append(secrets, s.Secret.Name)
				}
			}
		}
	}
	for _, s := range pod.Spec.ImagePullSecrets {
		secrets = append(secrets, s.Name)
	}
	return tidy(configMaps), tidy(secrets)
}

func tidy(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(s string) bool { return s == "" })
}
