// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PL-14: resources change through pods/resize, by PUT, every PATCH and apply, and by nothing else; the rest of the pod
// stays.
func TestResizeThroughSubresource(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	pods := c.CoreV1().Pods(ns)
	p, err := pods.Create(t.Context(), podWith("p", "100m", "50m"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := func(how string, got *corev1.Pod, err error, cpu string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		if has := got.Spec.Containers[0].Resources.Requests.Cpu().String(); has != cpu || got.Labels["sneaked"] != "" ||
			got.Generation != p.Generation+1 {
			t.Errorf("%s: %s, labels %v, generation %d after %d", how, has, got.Labels, got.Generation, p.Generation)
		}
		p = got
	}
	amounts := func(cpu string) string {
		return `"resources":{"requests":{"cpu":"` + cpu + `"},"limits":{"cpu":"` + cpu + `"}}`
	}
	name := p.Spec.Containers[0].Name
	got, err := pods.Patch(t.Context(), "p", types.StrategicMergePatchType,
		[]byte(`{"metadata":{"labels":{"sneaked":"in"}},"spec":{"containers":[{"name":"`+
			name+`","image":"other:1",`+amounts("200m")+`}]}}`), metav1.PatchOptions{}, "resize")
	want("strategic merge", got, err, "200m")
	got, err = pods.Patch(t.Context(), "p", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/containers/0/resources","value":{"requests":{"cpu":"300m"},"limits":{"cpu":"300m"}}}]`), metav1.PatchOptions{}, "resize")
	want("JSON patch", got, err, "300m")
	put := p.DeepCopy()
	put.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: cpus("400m"), Limits: cpus("400m")}
	stale := put.DeepCopy()
	got, err = pods.UpdateResize(t.Context(), "p", put, metav1.UpdateOptions{})
	want("PUT", got, err, "400m")
	stale.Spec.Containers[0].Resources.Requests = cpus("10m")
	if _, err := pods.UpdateResize(t.Context(), "p", stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("PUT of an older version: %v", err)
	}
	got, err = pods.Patch(t.Context(), "p", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"`+
			name+`",`+amounts("500m")+`}]}}`), metav1.PatchOptions{FieldManager: "me", Force: new(true)}, "resize")
	want("apply", got, err, "500m")
	shown := &corev1.Pod{}
	if err := c.CoreV1().RESTClient().Get().Namespace(ns).Resource("pods").Name("p").SubResource("resize").Do(t.Context()).Into(shown); err != nil ||
		!equality.Semantic.DeepEqual(shown.Spec, p.Spec) {
		t.Errorf("GET: %v, %+v", err, shown.Spec)
	}
	plain := p.DeepCopy()
	plain.Spec.Containers[0].Resources.Requests = cpus("1")
	if _, err := pods.Update(t.Context(), plain, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an ordinary update has changed resources: %v", err)
	}
	_, err = pods.Patch(t.Context(), "p", types.MergePatchType,
		[]byte(`{"spec":{"containers":[{"name":"else","image":"x:1"}]}}`), metav1.PatchOptions{}, "resize")
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(),
		"spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize") {
		t.Errorf("another container: %v", err)
	}
}

// PL-14, PL-23: limit ranges, quotas and the node's size hold for resizes too, and a pod's own resources are completed
// when its containers are.
func TestResizeIsAdmitted(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	pods := c.CoreV1().Pods(ns)
	ask := func(name, cpu string) error {
		_, err := pods.Patch(t.Context(), name, types.StrategicMergePatchType,
			[]byte(`{"spec":{"containers":[{"name":"`+pod("p").Spec.Containers[0].Name+
				`","resources":{"requests":{"cpu":"`+cpu+`"},"limits":{"cpu":"`+cpu+`"}}}]}}`), metav1.PatchOptions{},
			"resize")
		return err
	}
	for _, name := range []string{"p", "q"} {
		if _, err := pods.Create(t.Context(), podWith(name, "300m", ""), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	limit(t, c, ns, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: cpus("500m"), Min: cpus("50m")})
	refusedFor(t, ask("p", "600m"), "maximum cpu usage per Container is 500m, but limit is 600m")
	refusedFor(t, ask("p", "10m"), "minimum cpu usage per Container is 50m, but request is 10m")
	if err := ask("p", "400m"); err != nil {
		t.Error(err)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec: corev1.ResourceQuotaSpec{Hard: cpus("800m")}}
	if _, err := c.CoreV1().ResourceQuotas(ns).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refusedFor(t, ask("q", "500m"), "exceeded quota: few, requested: cpu=200m, used: cpu=700m, limited: cpu=800m")
	if err := ask("q", "400m"); err != nil {
		t.Error(err)
	}
	whole := pod("whole")
	whole.Spec.Resources = &corev1.ResourceRequirements{Limits: cpus("100m")}
	whole.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: cpus("60m"), Limits: cpus("60m")}
	if _, err := pods.Create(t.Context(), whole, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil {
		t.Error("the quota does not count a pod's own resources")
	}
	if err := c.CoreV1().ResourceQuotas(ns).Delete(t.Context(), "few", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := pods.Create(t.Context(), whole, metav1.CreateOptions{})
	if err != nil || got.Spec.Resources.Requests.Cpu().String() != "60m" {
		t.Errorf("a pod's own resources: %v, %v", got.Spec.Resources, err)
	}
}
