// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/ptr"
)

func resourceOf(s string) *resource.Quantity { return ptr.To(resource.MustParse(s)) }

// busy answers for the figures of nodes, of which this test has none: every pod uses five times what it asked for.
type busy struct {
	http.RoundTripper
	pods func() []corev1.Pod
}

// RoundTrip implements http.RoundTripper.
func (b busy) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, "/apis/metrics.k8s.io/") {
		return b.RoundTripper.RoundTrip(r)
	}
	list := metricsv1beta1.PodMetricsList{TypeMeta: metav1.TypeMeta{Kind: "PodMetricsList",
		APIVersion: metricsv1beta1.SchemeGroupVersion.String()}}
	for _, p := range b.pods() {
		list.Items = append(list.Items, metricsv1beta1.PodMetrics{ObjectMeta: metav1.ObjectMeta{Name: p.Name,
			Namespace: p.Namespace}, Timestamp: metav1.Now(), Window: metav1.Duration{Duration: time.Second},
			Containers: []metricsv1beta1.ContainerMetrics{{Name: "main",
				Usage: corev1.ResourceList{corev1.ResourceCPU: *resourceOf("500m")}}}})
	}
	body, err := json.Marshal(list)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(body))), Request: r}, err
}

// TestAutoscaler proves WL-05 and WL-06: the first autoscaler begins its controller, which makes a Deployment as large
// as its pods are busy.
func TestAutoscaler(t *testing.T) {
	client := start(t)
	ns := newNamespace(t, client)
	leaveNothing(t, client, ns)
	pods := func() []corev1.Pod {
		list, err := client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return nil
		}
		return list.Items
	}
	m := startWorkloads(t, func(name string, c *rest.Config) {
		if name == "horizontal-pod-autoscaler" {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper { return busy{next, pods} })
		}
	})
	if m.Started("horizontal-pod-autoscaler") {
		t.Error("the controller of autoscalers runs without any")
	}
	web(t, client, ns, 1)
	deployments, err := client.AppsV1().Deployments(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer deployments.Stop()
	_, err = client.AutoscalingV2().HorizontalPodAutoscalers(ns).Create(t.Context(),
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "h"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3,
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
					Name: "web"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	until(t, deployments, func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 3 })
	t.Logf("larger after %v", time.Since(began))
}
