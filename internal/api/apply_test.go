// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
)

// Server-side apply creates, changes, owns and gives up fields; another manager's field is a conflict until forced.
func TestServerSideApply(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	cms := c.CoreV1().ConfigMaps(ns)
	apply := func(manager string, data map[string]string, force bool) (*corev1.ConfigMap, error) {
		return cms.Apply(t.Context(), applycorev1.ConfigMap("c", ns).WithData(data),
			metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	if _, err := apply("a", map[string]string{"x": "1", "y": "1"}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := apply("b", map[string]string{"x": "2"}, false); !apierrors.IsConflict(err) ||
		!strings.Contains(err.Error(), `conflict with "a"`) || !strings.Contains(err.Error(), ".data.x") {
		t.Errorf("conflicting apply: %v", err)
	}
	if got, err := apply("b", map[string]string{"x": "2"}, true); err != nil || got.Data["x"] != "2" ||
		got.Data["y"] != "1" {
		t.Errorf("forced apply: %v, %v", got, err)
	}
	got, err := apply("a", map[string]string{"z": "1"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got.Data) != "map[x:2 z:1]" { // y was a's alone, x is b's now
		t.Errorf("data %v", got.Data)
	}
	managers := map[string]bool{}
	for _, m := range got.ManagedFields {
		managers[m.Manager] = m.Operation == metav1.ManagedFieldsOperationApply
	}
	if !managers["a"] || !managers["b"] {
		t.Errorf("managed fields: %v", got.ManagedFields)
	}
}

// Server-side apply of a pod goes through defaults, admission and validation like any create; lists merge by key.
func TestApplyPod(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	pods := c.CoreV1().Pods(ns)
	config := func(image string) *applycorev1.PodApplyConfiguration {
		return applycorev1.Pod("p", ns).WithSpec(applycorev1.PodSpec().
			WithContainers(applycorev1.Container().WithName("main").WithImage(image)).
			WithTerminationGracePeriodSeconds(3))
	}
	p, err := pods.Apply(t.Context(), config("one"), metav1.ApplyOptions{FieldManager: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if p.Spec.ServiceAccountName != "default" || ptr.Deref(p.Spec.TerminationGracePeriodSeconds, 0) != 3 ||
		p.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("applied pod: %+v", p.Spec)
	}
	again, err := pods.Apply(t.Context(), config("one"), metav1.ApplyOptions{FieldManager: "m"})
	if err != nil || again.ResourceVersion != p.ResourceVersion {
		t.Errorf("applying the same again wrote: %v, %v", again.ResourceVersion, err)
	}
	p, err = pods.Apply(t.Context(), config("two"), metav1.ApplyOptions{FieldManager: "m"})
	if err != nil || p.Spec.Containers[0].Image != "two" || len(p.Spec.Containers) != 1 || p.Generation != 2 {
		t.Errorf("second apply: %v, %v", p, err)
	}
	if _, err := pods.Apply(t.Context(), applycorev1.Pod("bad", ns).WithSpec(applycorev1.PodSpec()),
		metav1.ApplyOptions{FieldManager: "m"}); !apierrors.IsInvalid(err) {
		t.Errorf("an empty pod: %v", err)
	}
	if _, err := pods.Apply(t.Context(), applycorev1.Pod("p", "missing-ns").WithSpec(config("x").Spec),
		metav1.ApplyOptions{FieldManager: "m"}); err == nil {
		t.Error("applied into another namespace")
	}
	status := applycorev1.Pod("p", ns).WithStatus(applycorev1.PodStatus().WithPhase(corev1.PodRunning))
	if p, err = pods.ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: "node"}); err != nil ||
		p.Status.Phase != corev1.PodRunning {
		t.Errorf("apply of the status: %v, %v", p, err)
	}
}

// All patch types change what they say and nothing else; strategic merge knows merge keys and directives.
func TestPatches(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	pods := c.CoreV1().Pods(ns)
	p := pod("p")
	p.Labels = map[string]string{"a": "1", "b": "1"}
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "second", Image: "s"})
	createPod(t, c, ns, p)
	for _, test := range []struct {
		name  string
		kind  types.PatchType
		patch string
		check func(*corev1.Pod) bool
	}{
		{"JSON", types.JSONPatchType,
			`[{"op":"test","path":"/metadata/labels/a","value":"1"},{"op":"remove","path":"/metadata/labels/b"}]`,
			func(p *corev1.Pod) bool { _, b := p.Labels["b"]; return !b && p.Labels["a"] == "1" }},
		{"merge", types.MergePatchType, `{"metadata":{"labels":{"a":null,"c":"1"}}}`,
			func(p *corev1.Pod) bool { _, a := p.Labels["a"]; return !a && p.Labels["c"] == "1" }},
		{"strategic by container name", types.StrategicMergePatchType,
			`{"spec":{"containers":[{"name":"second","image":"new"}]}}`,
			func(p *corev1.Pod) bool {
				return len(p.Spec.Containers) == 2 && p.Spec.Containers[0].Image == "registry.example/app:1" &&
					p.Spec.Containers[1].Image == "new"
			}},
		{"strategic with a directive", types.StrategicMergePatchType,
			`{"metadata":{"labels":{"$patch":"replace","only":"1"}}}`,
			func(p *corev1.Pod) bool { return len(p.Labels) == 1 && p.Labels["only"] == "1" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := pods.Patch(t.Context(), "p", test.kind, []byte(test.patch), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !test.check(got) {
				t.Errorf("labels %v, containers %v", got.Labels, got.Spec.Containers)
			}
		})
	}
	if _, err := pods.Patch(t.Context(), "p", types.JSONPatchType,
		[]byte(`[{"op":"test","path":"/metadata/labels/only","value":"2"}]`),
		metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a failed test: %v", err)
	}
	if _, err := pods.Patch(t.Context(), "p", types.StrategicMergePatchType,
		[]byte(`{"metadata":{"resourceVersion":"1","labels":{"q":"1"}}}`),
		metav1.PatchOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a patch of an old version: %v", err)
	}
	if _, err := pods.Patch(t.Context(), "ghost", types.MergePatchType, []byte(`{}`),
		metav1.PatchOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a patch of nothing: %v", err)
	}
}
