// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// podTemplate is what workloads make pods of.
func podTemplate() (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"app": "sample"}
	return &metav1.LabelSelector{MatchLabels: labels},
		corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("x").Spec}
}

// deployment is one of as many pods as the default says.
func deployment(name string) *appsv1.Deployment {
	selector, template := podTemplate()
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}
}

// workloadSamples are objects of the kinds whose rules are Kubernetes' own.
func workloadSamples(m metav1.ObjectMeta) map[schema.GroupVersionResource]runtime.Object {
	selector, template := podTemplate()
	apps := appsv1.SchemeGroupVersion
	return map[schema.GroupVersionResource]runtime.Object{
		apps.WithResource("deployments"): deployment(m.Name),
		apps.WithResource("replicasets"): &appsv1.ReplicaSet{ObjectMeta: m,
			Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}},
		apps.WithResource("statefulsets"): &appsv1.StatefulSet{ObjectMeta: m,
			Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template, ServiceName: "sample"}},
		apps.WithResource("daemonsets"): &appsv1.DaemonSet{ObjectMeta: m,
			Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
		apps.WithResource("controllerrevisions"): &appsv1.ControllerRevision{ObjectMeta: m,
			Data: runtime.RawExtension{Raw: []byte(`{"kind":"x"}`)}, Revision: 1},
	}
}
