// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// leaveNothing removes, when the controllers that are started after this have ended, what they made in a namespace:
// other tests' controllers would begin with it, and its pods take the room on their nodes.
func leaveNothing(t *testing.T, client kubernetes.Interface, ns string) {
	t.Cleanup(func() {
		ctx, all := context.Background(), metav1.ListOptions{}
		now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
		free := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
		err := errors.Join(client.AppsV1().Deployments(ns).DeleteCollection(ctx, now, all),
			client.AppsV1().ReplicaSets(ns).DeleteCollection(ctx, now, all),
			client.BatchV1().CronJobs(ns).DeleteCollection(ctx, now, all),
			client.BatchV1().Jobs(ns).DeleteCollection(ctx, free, all),
			client.CoreV1().ReplicationControllers(ns).DeleteCollection(ctx, free, all),
			client.CoreV1().Pods(ns).DeleteCollection(ctx, now, all))
		pods, listed := client.CoreV1().Pods(ns).List(ctx, all)
		if err := errors.Join(err, listed); err != nil {
			t.Error(err)
			return
		}
		for _, p := range pods.Items { // of Jobs, whose controller would have counted them
			_, err := client.CoreV1().Pods(ns).Patch(ctx, p.Name, types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	})
}

// web makes a Deployment and has its pods say that they are ready.
func web(t *testing.T, client kubernetes.Interface, ns string, replicas int32) map[string]string {
	t.Helper()
	labels := map[string]string{"app": "web"}
	pods, err := client.CoreV1().Pods(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	container := corev1.Container{Name: "main", Image: "example.com/x", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: *resourceOf("100m")}}}
	_, err = client.AppsV1().Deployments(ns).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready := map[string]bool{}
	until(t, pods, func(p *corev1.Pod) bool {
		if !ready[p.Name] {
			ready[p.Name] = true
			setReady(t, client, p)
		}
		return len(ready) == int(replicas)
	})
	pods.Stop()
	return labels
}

func setReady(t *testing.T, client kubernetes.Interface, p *corev1.Pod) {
	t.Helper()
	began := metav1.NewTime(time.Now().Add(-time.Hour))
	patch, err := json.Marshal(map[string]any{"status": corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &began,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: began}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods(p.Namespace).Patch(t.Context(), p.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// TestBudgetHoldsEvictions proves WL-05 and WL-06: the first budget begins its controller, which counts what may go;
// one pod may, the next may not, and is told why.
func TestBudgetHoldsEvictions(t *testing.T) {
	client := start(t)
	ns := newNamespace(t, client)
	leaveNothing(t, client, ns)
	m := startWorkloads(t, nil)
	if m.Started("disruption-controller") {
		t.Error("the controller of budgets runs without any")
	}
	labels := web(t, client, ns, 2)
	budgets, err := client.PolicyV1().PodDisruptionBudgets(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer budgets.Stop()
	_, err = client.PolicyV1().PodDisruptionBudgets(ns).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "one-stays"}, Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, MinAvailable: ptr.To(intstr.FromInt32(1))}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, budgets, func(b *policyv1.PodDisruptionBudget) bool {
		return b.Status.DisruptionsAllowed == 1
	})
	list, err := client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	evict := func(i int, o *metav1.DeleteOptions) error {
		return client.PolicyV1().Evictions(ns).Evict(context.Background(), &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: list.Items[i].Name, Namespace: ns}, DeleteOptions: o})
	}
	for range 2 {
		if err := evict(0, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Errorf("a dry run: %v", err)
		}
	}
	if err := evict(0, nil); err != nil {
		t.Fatal(err)
	}
	err = evict(1, nil)
	if !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("the second: %v", err)
	}
}
