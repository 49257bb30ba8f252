// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

func cpus(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// podWith is a pod whose main uses an amount of CPU, and so does its sidecar if that is not "".
func podWith(name, main, sidecar string) *corev1.Pod {
	p := pod(name)
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: cpus(main), Limits: cpus(main)}
	if sidecar != "" {
		p.Spec.InitContainers = []corev1.Container{{
			Name: "proxy", Image: "registry.example/proxy:1",
			RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
			Resources:     corev1.ResourceRequirements{Requests: cpus(sidecar), Limits: cpus(sidecar)},
		}}
	}
	return p
}

func limit(t *testing.T, c kubernetes.Interface, ns string, item corev1.LimitRangeItem) {
	t.Helper()
	l := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{GenerateName: "l-"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
	if _, err := c.CoreV1().LimitRanges(ns).Create(t.Context(), l, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// refusedFor fails the test unless an error is a 403 with these words.
func refusedFor(t *testing.T, err error, words ...string) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want a 403 with %q", err, words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %q, want %q in it", err, w)
		}
	}
}

// TestLimitRange: SC-16, through the API.
func TestLimitRange(t *testing.T) {
	c := client(t)
	t.Run("SC-16 a sidecar gets the defaults", func(t *testing.T) {
		ns := namespace(t, c)
		limit(t, c, ns, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: cpus("2"),
			DefaultRequest: cpus("1")})
		p := podWith("p", "1", "1")
		p.Spec.InitContainers[0].Resources = corev1.ResourceRequirements{}
		got := createPod(t, c, ns, p)
		if r := got.Spec.InitContainers[0].Resources; r.Requests.Cpu().String() != "1" ||
			r.Limits.Cpu().String() != "2" {
			t.Errorf("sidecar: %v", r)
		}
		if r := got.Spec.Containers[0].Resources; r.Limits.Cpu().String() != "1" {
			t.Errorf("main: %v", r)
		}
		if want := "LimitRanger plugin set: cpu request for init container proxy; cpu limit for init container proxy"; got.Annotations["kubernetes.io/limit-ranger"] != want {
			t.Errorf("annotations %v", got.Annotations)
		}
		if got.Status.QOSClass != corev1.PodQOSBurstable {
			t.Errorf("class %s is not that of the pod with its defaults", got.Status.QOSClass)
		}
		t.Run("nothing more happens to it", func(t *testing.T) {
			got.Labels = map[string]string{"a": "b"}
			limit(t, c, ns, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: cpus("1m")})
			if _, err := c.CoreV1().Pods(ns).Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
			got, err := c.CoreV1().Pods(ns).Get(t.Context(), "p", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "registry.example/sh:1"}}}
			got, err = c.CoreV1().Pods(ns).UpdateEphemeralContainers(t.Context(), "p", got, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if r := got.Spec.EphemeralContainers[0].Resources; len(r.Requests)+len(r.Limits) > 0 {
				t.Errorf("ephemeral container: %v", r)
			}
		})
	})
	t.Run("SC-16 so does one that is applied", func(t *testing.T) {
		ns := namespace(t, c)
		limit(t, c, ns, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: cpus("2")})
		apply := applycorev1.Pod("p", ns).WithSpec(applycorev1.PodSpec().
			WithContainers(applycorev1.Container().WithName("main").WithImage("registry.example/app:1")).
			WithInitContainers(applycorev1.Container().WithName("proxy").WithImage("registry.example/app:1").WithRestartPolicy(corev1.ContainerRestartPolicyAlways)))
		got, err := c.CoreV1().Pods(ns).Apply(t.Context(), apply, metav1.ApplyOptions{FieldManager: "test"})
		if err != nil {
			t.Fatal(err)
		}
		if r := got.Spec.InitContainers[0].Resources; r.Requests.Cpu().String() != "2" ||
			r.Limits.Cpu().String() != "2" {
			t.Errorf("sidecar: %v", r)
		}
	})
	t.Run("SC-16 a pod is too large because of its sidecar", func(t *testing.T) {
		ns := namespace(t, c)
		limit(t, c, ns, corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: cpus("2")})
		createPod(t, c, ns, podWith("alone", "1500m", ""))
		_, err := c.CoreV1().Pods(ns).Create(t.Context(), podWith("p", "1500m", "1"), metav1.CreateOptions{})
		refusedFor(t, err, `pods "p" is forbidden: maximum cpu usage per Pod is 2, but limit is 2500m`)
		init := podWith("init", "1500m", "1")
		init.Spec.InitContainers[0].RestartPolicy = nil
		createPod(t, c, ns, init)
	})
	t.Run("SC-16 every violation at once, of all ranges", func(t *testing.T) {
		ns := namespace(t, c)
		limit(t, c, ns, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: cpus("1")})
		limit(t, c, ns, corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: cpus("3")})
		_, err := c.CoreV1().Pods(ns).Create(t.Context(), podWith("p", "2", "1500m"), metav1.CreateOptions{})
		refusedFor(t, err, "maximum cpu usage per Container is 1, but limit is 2 (container main)",
			"maximum cpu usage per Container is 1, but limit is 1500m (init container proxy)",
			"maximum cpu usage per Pod is 3, but limit is 3500m")
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Code != 403 {
			t.Errorf("got %v", err)
		}
	})
}
