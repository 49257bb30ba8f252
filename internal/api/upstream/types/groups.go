// SPDX-License-Identifier: Apache-2.0

package types

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kubernetes/pkg/apis/apps"
	appsv1 "k8s.io/kubernetes/pkg/apis/apps/v1"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	autoscalingv1 "k8s.io/kubernetes/pkg/apis/autoscaling/v1"
	autoscalingv2 "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	"k8s.io/kubernetes/pkg/apis/batch"
	batchv1 "k8s.io/kubernetes/pkg/apis/batch/v1"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/networking"
	networkingv1 "k8s.io/kubernetes/pkg/apis/networking/v1"
	"k8s.io/kubernetes/pkg/apis/policy"
	policyv1 "k8s.io/kubernetes/pkg/apis/policy/v1"
	"k8s.io/kubernetes/pkg/apis/resource"
	resourcev1 "k8s.io/kubernetes/pkg/apis/resource/v1"
	"k8s.io/kubernetes/pkg/apis/storage"
	storagev1 "k8s.io/kubernetes/pkg/apis/storage/v1"
	"k8s.io/kubernetes/pkg/apis/storagemigration"
	storagemigrationv1 "k8s.io/kubernetes/pkg/apis/storagemigration/v1"
)

// Apps is group apps. Its internal version also holds the Scale of its subresources.
func Apps(s *runtime.Scheme) error { return all(s, apps.AddToScheme, appsv1.AddToScheme) }

// Autoscaling is group autoscaling in both its versions.
func Autoscaling(s *runtime.Scheme) error {
	return all(s, autoscaling.AddToScheme, autoscalingv2.AddToScheme, autoscalingv1.AddToScheme)
}

// Batch is group batch.
func Batch(s *runtime.Scheme) error { return all(s, batch.AddToScheme, batchv1.AddToScheme) }

// Core are those kinds of the core group whose rules are Kubernetes' own: its other kinds have ours.
func Core(s *runtime.Scheme) error {
	volumes(s)
	replication(s)
	return corev1.RegisterConversions(s) // of all core kinds: those of others are never called
}

// Networking is group networking.k8s.io.
func Networking(s *runtime.Scheme) error {
	return all(s, networking.AddToScheme, networkingv1.AddToScheme)
}

// Policy is group policy without the Eviction, whose rules are ours.
func Policy(s *runtime.Scheme) error {
	return all(s, func(s *runtime.Scheme) error {
		s.AddKnownTypes(policy.SchemeGroupVersion, &policy.PodDisruptionBudget{}, &policy.PodDisruptionBudgetList{})
		return nil
	}, policyv1.AddToScheme)
}

// Registration is group apiregistration.k8s.io.
func Registration(s *runtime.Scheme) error {
	return all(s, apiregistration.AddToScheme, apiregistrationv1.AddToScheme)
}

// Resource is group resource.k8s.io.
func Resource(s *runtime.Scheme) error { return all(s, resource.AddToScheme, resourcev1.AddToScheme) }

// StorageMigration is group storagemigration.k8s.io.
func StorageMigration(s *runtime.Scheme) error {
	return all(s, storagemigration.AddToScheme, storagemigrationv1.AddToScheme)
}

// Storage is group storage.k8s.io.
func Storage(s *runtime.Scheme) error { return all(s, storage.AddToScheme, storagev1.AddToScheme) }

func volumes(s *runtime.Scheme) {
	s.AddKnownTypes(core.SchemeGroupVersion, &core.PersistentVolume{}, &core.PersistentVolumeList{},
		&core.PersistentVolumeClaim{}, &core.PersistentVolumeClaimList{})
	s.AddTypeDefaultingFunc(&v1.PersistentVolume{}, func(obj any) {
		corev1.SetObjectDefaults_PersistentVolume(obj.(*v1.PersistentVolume))
	})
	s.AddTypeDefaultingFunc(&v1.PersistentVolumeList{}, func(obj any) {
		corev1.SetObjectDefaults_PersistentVolumeList(obj.(*v1.PersistentVolumeList))
	})
	s.AddTypeDefaultingFunc(&v1.PersistentVolumeClaim{}, func(obj any) {
		corev1.SetObjectDefaults_PersistentVolumeClaim(obj.(*v1.PersistentVolumeClaim))
	})
	s.AddTypeDefaultingFunc(&v1.PersistentVolumeClaimList{}, func(obj any) {
		corev1.SetObjectDefaults_PersistentVolumeClaimList(obj.(*v1.PersistentVolumeClaimList))
	})
}

func replication(s *runtime.Scheme) {
	s.AddKnownTypes(core.SchemeGroupVersion, &core.ReplicationController{}, &core.ReplicationControllerList{})
	s.AddTypeDefaultingFunc(&v1.ReplicationController{}, func(obj any) {
		corev1.SetObjectDefaults_ReplicationController(obj.(*v1.ReplicationController))
	})
	s.AddTypeDefaultingFunc(&v1.ReplicationControllerList{}, func(obj any) {
		corev1.SetObjectDefaults_ReplicationControllerList(obj.(*v1.ReplicationControllerList))
	})
}

func all(s *runtime.Scheme, adds ...func(*runtime.Scheme) error) error {
	for _, add := range adds {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}
