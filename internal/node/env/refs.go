// SPDX-License-Identifier: Apache-2.0

package env

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// References lists the names of the ConfigMaps and Secrets, all of the pod's namespace, that the container's
// environment names, optional ones too; sorted, each once.
func References(c *corev1.Container) (configMaps, secrets []string) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			configMaps = append(configMaps, from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			secrets = append(secrets, from.SecretRef.Name)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			configMaps = append(configMaps, r.Name)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			secrets = append(secrets, r.Name)
		}
	}
	return unique(configMaps), unique(secrets)
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
