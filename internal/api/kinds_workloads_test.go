// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
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

// job is one whose single pod is not started again.
func job(name string) *batchv1.Job {
	_, template := podTemplate()
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: template}}
}

// replicationController is one of as many pods as the default says.
func replicationController(name string) *corev1.ReplicationController {
	_, template := podTemplate()
	return &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ReplicationControllerSpec{Template: &template}}
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
		batchv1.SchemeGroupVersion.WithResource("jobs"): job(m.Name),
		batchv1.SchemeGroupVersion.WithResource("cronjobs"): &batchv1.CronJob{ObjectMeta: m,
			Spec: batchv1.CronJobSpec{Schedule: "@daily",
				JobTemplate: batchv1.JobTemplateSpec{Spec: job(m.Name).Spec}}},
		corev1.SchemeGroupVersion.WithResource("replicationcontrollers"): replicationController(m.Name),
		policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"): budget(m.Name, 1),
		autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"): &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: m, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3,
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
					Name: "web"}}},
	}
}

// budget wants so many pods of podTemplate to stay.
func budget(name string, stay int) *policyv1.PodDisruptionBudget {
	selector, _ := podTemplate()
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector, MinAvailable: ptr.To(intstr.FromInt(stay))}}
}

// networkSamples are objects of the kinds of networking.k8s.io.
func networkSamples(m metav1.ObjectMeta) map[schema.GroupVersionResource]runtime.Object {
	gv := networkingv1.SchemeGroupVersion
	ip := m
	ip.Name = "10.255.0.9"
	return map[schema.GroupVersionResource]runtime.Object{
		gv.WithResource("ingresses"): &networkingv1.Ingress{ObjectMeta: m, Spec: networkingv1.IngressSpec{
			DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web",
				Port: networkingv1.ServiceBackendPort{Number: 80}}}}},
		gv.WithResource("ingressclasses"): &networkingv1.IngressClass{ObjectMeta: m,
			Spec: networkingv1.IngressClassSpec{Controller: "example.com/ingress"}},
		gv.WithResource("networkpolicies"): &networkingv1.NetworkPolicy{ObjectMeta: m},
		gv.WithResource("servicecidrs"): &networkingv1.ServiceCIDR{ObjectMeta: m,
			Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.254.0.0/24"}}},
		gv.WithResource("ipaddresses"): &networkingv1.IPAddress{ObjectMeta: ip, Spec: networkingv1.IPAddressSpec{
			ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: "default", Name: "x"}}},
	}
}

// volumeSamples are objects of the kinds of volumes.
func volumeSamples(m metav1.ObjectMeta) map[schema.GroupVersionResource]runtime.Object {
	core, storage := corev1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	volume, claim := sampleVolume(m.Name), sampleClaim(m.Name)
	return map[schema.GroupVersionResource]runtime.Object{
		core.WithResource("persistentvolumes"):      volume,
		core.WithResource("persistentvolumeclaims"): claim,
		storage.WithResource("storageclasses"): &storagev1.StorageClass{ObjectMeta: m,
			Provisioner: "example.com/p"},
		storage.WithResource("volumeattachments"): &storagev1.VolumeAttachment{ObjectMeta: m,
			Spec: storagev1.VolumeAttachmentSpec{Attacher: "example.com", NodeName: "n",
				Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("v")}}},
		storage.WithResource("csidrivers"): &storagev1.CSIDriver{ObjectMeta: m},
		storage.WithResource("csinodes"):   &storagev1.CSINode{ObjectMeta: m},
		storage.WithResource("csistoragecapacities"): &storagev1.CSIStorageCapacity{ObjectMeta: m,
			StorageClassName: "c"},
		storage.WithResource("volumeattributesclasses"): &storagev1.VolumeAttributesClass{ObjectMeta: m,
			DriverName: "example.com/p", Parameters: map[string]string{"a": "b"}},
	}
}

func sampleVolume(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/x"}}}}
}

func sampleClaim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
}
