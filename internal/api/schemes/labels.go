// SPDX-License-Identifier: Apache-2.0

package schemes

import (
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// addFieldLabels says which fields of a kind a field selector may name; metadata.name and metadata.namespace go without
// saying.
func addFieldLabels(scheme *runtime.Scheme) error {
	selectable := map[schema.GroupVersionKind]map[string]string{
		corev1.SchemeGroupVersion.WithKind("Pod"): same("spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
			"spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs",
			"status.nominatedNodeName"),
		corev1.SchemeGroupVersion.WithKind("Node"):                  same("spec.unschedulable"),
		corev1.SchemeGroupVersion.WithKind("Namespace"):             same("status.phase"),
		corev1.SchemeGroupVersion.WithKind("Secret"):                same("type"),
		corev1.SchemeGroupVersion.WithKind("Service"):               same("spec.clusterIP", "spec.type"),
		corev1.SchemeGroupVersion.WithKind("ReplicationController"): same("status.replicas"),
		corev1.SchemeGroupVersion.WithKind("Event"): same("involvedObject.kind", "involvedObject.namespace",
			"involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
			"involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"),
		eventsv1.SchemeGroupVersion.WithKind("Event"): {
			"regarding.kind": "involvedObject.kind", "regarding.namespace": "involvedObject.namespace",
			"regarding.name": "involvedObject.name", "regarding.uid": "involvedObject.uid",
			"regarding.apiVersion":      "involvedObject.apiVersion",
			"regarding.resourceVersion": "involvedObject.resourceVersion",
			"regarding.fieldPath":       "involvedObject.fieldPath", "reason": "reason",
			"reportingController": "reportingComponent", "type": "type",
		},
		certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"): same("spec.signerName"),
		debugrun.GroupVersion().WithKind("DebugRun"): same("spec.kind", "spec.pod.name",
			"spec.pod.uid", "spec.container", "spec.user"),
	}
	for gvk, labels := range selectable {
		err := scheme.AddFieldLabelConversionFunc(gvk, func(label, value string) (string, string, error) {
			if label == "metadata.name" || label == "metadata.namespace" {
				return label, value, nil
			}
			if to, ok := labels[label]; ok {
				return to, value, nil
			}
			return "", "", fmt.Errorf("field label not supported for %s: %s", gvk.Kind, label)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func same(labels ...string) map[string]string {
	m := make(map[string]string, len(labels))
	for _, l := range labels {
		m[l] = l
	}
	return m
}
