// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestDeploymentMakesPods: WL-02, WL-06, the first Deployment begins its controllers, which make its ReplicaSet and pods; with it, all of
// them go (WL-04).
func TestDeploymentMakesPods(t *testing.T) {
	client := start(t)
	m := startWorkloads(t, nil)
	ns := newNamespace(t, client)
	if m.Started("deployment-controller") || m.Started("replicaset-controller") {
		t.Error("controllers run that have nothing to do")
	}
	pods, err := client.CoreV1().Pods(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	labels := map[string]string{"app": "web"}
	_, err = client.AppsV1().Deployments(ns).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/x"}}}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	there := map[string]bool{}
	patience := time.After(30 * time.Second)
	next := func(done func() bool) {
		t.Helper()
		for !done() {
			select {
			case e := <-pods.ResultChan():
				pod, ok := e.Object.(*corev1.Pod)
				if !ok {
					t.Fatalf("the watch says %v", e)
				}
				there[pod.Name] = e.Type != "DELETED"
				if e.Type == "DELETED" {
					delete(there, pod.Name)
				}
			case <-patience:
				t.Fatalf("pods: %v", there)
			}
		}
	}
	next(func() bool { return len(there) == 3 })
	t.Logf("3 pods after %v", time.Since(began))
	if err := client.AppsV1().Deployments(ns).Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	next(func() bool { return len(there) == 0 })
}
