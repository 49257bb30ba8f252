// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// verbs are the calls that a run makes on one kind.
type verbs struct {
	get    func(ctx context.Context, name string) (runtime.Object, error)
	create func(ctx context.Context, opts metav1.CreateOptions) (runtime.Object, error)
	apply  func(ctx context.Context, name string, body []byte, opts metav1.PatchOptions) (runtime.Object, error)
	delete func(ctx context.Context, name string, opts metav1.DeleteOptions) error
	watch  func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// exists reports whether there is an object of this name.
func (v verbs) exists(ctx context.Context, name string) (bool, error) {
	_, err := v.get(ctx, name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// typed is what all typed clients have.
type typed[T runtime.Object] interface {
	Create(ctx context.Context, obj T, opts metav1.CreateOptions) (T, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions,
		subresources ...string) (T, error)
}

func verbsOf[T runtime.Object](c typed[T], obj T) (verbs, bool) {
	return verbs{
		get: func(ctx context.Context, name string) (runtime.Object, error) {
			return c.Get(ctx, name, metav1.GetOptions{})
		},
		create: func(ctx context.Context, opts metav1.CreateOptions) (runtime.Object, error) {
			return c.Create(ctx, obj, opts)
		},
		apply: func(ctx context.Context, name string, body []byte, opts metav1.PatchOptions) (runtime.Object, error) {
			return c.Patch(ctx, name, types.ApplyPatchType, body, opts)
		},
		delete: c.Delete,
		watch:  c.Watch,
	}, true
}

// verbsFor returns the calls for an object; false for kinds that a run does not take.
func verbsFor(client kubernetes.Interface, ns string, obj runtime.Object) (verbs, bool) {
	core, apps, batch := client.CoreV1(), client.AppsV1(), client.BatchV1()
	switch o := obj.(type) {
	case *corev1.Pod:
		return verbsOf(core.Pods(ns), o)
	case *appsv1.Deployment:
		return verbsOf(apps.Deployments(ns), o)
	case *appsv1.ReplicaSet:
		return verbsOf(apps.ReplicaSets(ns), o)
	case *appsv1.StatefulSet:
		return verbsOf(apps.StatefulSets(ns), o)
	case *appsv1.DaemonSet:
		return verbsOf(apps.DaemonSets(ns), o)
	case *batchv1.Job:
		return verbsOf(batch.Jobs(ns), o)
	case *batchv1.CronJob:
		return verbsOf(batch.CronJobs(ns), o)
	case *corev1.ReplicationController:
		return verbsOf(core.ReplicationControllers(ns), o)
	}
	if v, ok := besideFor(client, ns, obj); ok {
		return v, true
	}
	return clusterWideFor(client, obj)
}

// besideFor are the calls for what stands beside pods in a namespace.
func besideFor(client kubernetes.Interface, ns string, obj runtime.Object) (verbs, bool) {
	core := client.CoreV1()
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		return verbsOf(core.ConfigMaps(ns), o)
	case *corev1.Secret:
		return verbsOf(core.Secrets(ns), o)
	case *corev1.ServiceAccount:
		return verbsOf(core.ServiceAccounts(ns), o)
	case *corev1.Service:
		return verbsOf(core.Services(ns), o)
	case *corev1.Endpoints:
		return verbsOf(core.Endpoints(ns), o)
	case *corev1.PersistentVolumeClaim:
		return verbsOf(core.PersistentVolumeClaims(ns), o)
	case *corev1.LimitRange:
		return verbsOf(core.LimitRanges(ns), o)
	case *corev1.ResourceQuota:
		return verbsOf(core.ResourceQuotas(ns), o)
	case *networkingv1.Ingress:
		return verbsOf(client.NetworkingV1().Ingresses(ns), o)
	case *networkingv1.NetworkPolicy:
		return verbsOf(client.NetworkingV1().NetworkPolicies(ns), o)
	case *policyv1.PodDisruptionBudget:
		return verbsOf(client.PolicyV1().PodDisruptionBudgets(ns), o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		return verbsOf(client.AutoscalingV2().HorizontalPodAutoscalers(ns), o)
	case *rbacv1.Role:
		return verbsOf(client.RbacV1().Roles(ns), o)
	case *rbacv1.RoleBinding:
		return verbsOf(client.RbacV1().RoleBindings(ns), o)
	}
	return verbs{}, false
}

// clusterWideFor are the calls for what is in no namespace.
func clusterWideFor(client kubernetes.Interface, obj runtime.Object) (verbs, bool) {
	switch o := obj.(type) {
	case *corev1.Namespace:
		return verbsOf(client.CoreV1().Namespaces(), o)
	case *corev1.PersistentVolume:
		return verbsOf(client.CoreV1().PersistentVolumes(), o)
	case *storagev1.StorageClass:
		return verbsOf(client.StorageV1().StorageClasses(), o)
	case *networkingv1.IngressClass:
		return verbsOf(client.NetworkingV1().IngressClasses(), o)
	case *rbacv1.ClusterRole:
		return verbsOf(client.RbacV1().ClusterRoles(), o)
	case *rbacv1.ClusterRoleBinding:
		return verbsOf(client.RbacV1().ClusterRoleBindings(), o)
	case *schedulingv1.PriorityClass:
		return verbsOf(client.SchedulingV1().PriorityClasses(), o)
	}
	return verbs{}, false
}

// isPod and isWorkload decide what a run attends to: pods, and what makes pods. All else stands beside them.
func isPod(obj runtime.Object) bool { _, ok := obj.(*corev1.Pod); return ok }

func isWorkload(obj runtime.Object) bool {
	switch obj.(type) {
	case *appsv1.Deployment, *appsv1.ReplicaSet, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.Job, *batchv1.CronJob,
		*corev1.ReplicationController:
		return true
	}
	return false
}

// runsOnce recognizes pods and Jobs: one that is there already cannot be run again.
func runsOnce(obj runtime.Object) bool {
	_, job := obj.(*batchv1.Job)
	return job || isPod(obj)
}
