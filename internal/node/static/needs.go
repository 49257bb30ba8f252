// SPDX-License-Identifier: Apache-2.0

package static

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// needsAPI names what a pod refers to that only an API server has, in the kubelet's words; "" if there is nothing.
func needsAPI(pod *corev1.Pod) string {
	switch {
	case pod.Spec.ServiceAccountName != "", pod.Spec.DeprecatedServiceAccount != "":
		return "serviceaccounts"
	case len(pod.Spec.ImagePullSecrets) > 0:
		return "secrets"
	}
	for ref := range podspec.Containers(&pod.Spec) {
		if what := envNeeds(ref.Container); what != "" {
			return what
		}
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		return "resourceclaims"
	}
	for i := range pod.Spec.Volumes {
		if what := volumeNeeds(&pod.Spec.Volumes[i].VolumeSource); what != "" {
			return what
		}
	}
	return ""
}

func envNeeds(c *corev1.Container) string {
	for _, from := range c.EnvFrom {
		switch {
		case from.SecretRef != nil:
			return "secrets"
		case from.ConfigMapRef != nil:
			return "configmaps"
		}
	}
	for _, e := range c.Env {
		switch {
		case e.ValueFrom == nil:
		case e.ValueFrom.SecretKeyRef != nil:
			return "secrets"
		case e.ValueFrom.ConfigMapKeyRef != nil:
			return "configmaps"
		}
	}
	return ""
}

func volumeNeeds(v *corev1.VolumeSource) string {
	switch {
	case v.ConfigMap != nil:
		return "configmaps (via configmap volumes)"
	case v.Secret != nil:
		return "secrets (via secret volumes)"
	case v.CSI != nil:
		return "csidrivers (via CSI volumes)"
	case v.Glusterfs != nil:
		return "endpoints (via glusterFS volumes)"
	case v.PersistentVolumeClaim != nil:
		return "persistentvolumeclaims"
	case v.Ephemeral != nil:
		return "persistentvolumeclaims (via ephemeral volumes)"
	case v.AzureFile != nil:
		return "secrets (via azureFile volumes)"
	case v.Projected == nil:
		return ""
	}
	for i := range v.Projected.Sources {
		if what := projectionNeeds(&v.Projected.Sources[i]); what != "" {
			return what
		}
	}
	return ""
}

func projectionNeeds(s *corev1.VolumeProjection) string {
	switch {
	case s.ConfigMap != nil:
		return "configmaps (via projected volumes)"
	case s.Secret != nil:
		return "secrets (via projected volumes)"
	case s.ServiceAccountToken != nil:
		return "serviceaccounts (via projected volumes)"
	case s.ClusterTrustBundle != nil:
		return "clustertrustbundles"
	case s.PodCertificate != nil:
		return "podcertificates"
	}
	return ""
}
