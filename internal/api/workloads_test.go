// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	kubectlscheme "k8s.io/kubectl/pkg/scheme"
	"k8s.io/utils/ptr"
)

// TestDeploymentObjects proves WL-01 on a Deployment: defaults, generation, status and scale apart from the spec, the
// words of its validation, and what a write to a subresource leaves alone.
func TestDeploymentObjects(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	all := c.AppsV1().Deployments(ns)
	made, err := all.Create(t.Context(), deployment("web"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Generation != 1 || *made.Spec.Replicas != 1 ||
		made.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType ||
		made.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyAlways || *made.Spec.RevisionHistoryLimit != 10 {
		t.Errorf("defaults: %+v", made)
	}
	made.Status.Replicas, made.Status.ObservedGeneration = 1, 1
	made.Spec.Paused = true
	reported, err := all.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	if err != nil || reported.Status.Replicas != 1 || reported.Spec.Paused || reported.Generation != 1 {
		t.Errorf("status: %+v, %v", reported, err)
	}
	scale, err := all.UpdateScale(t.Context(), "web", &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns}, Spec: autoscalingv1.ScaleSpec{Replicas: 3}},
		metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 1 || scale.Status.Selector != "app=sample" {
		t.Errorf("scale: %+v, %v", scale, err)
	}
	scaled, err := all.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || *scaled.Spec.Replicas != 3 || scaled.Generation != 2 {
		t.Errorf("scaled: %+v, %v", scaled, err)
	}
	if err := c.AppsV1().RESTClient().Patch(types.MergePatchType).Namespace(ns).Resource("deployments").Name("web").
		SubResource("scale").Body([]byte(`{"spec":{"replicas":2}}`)).Do(t.Context()).Error(); err != nil {
		t.Errorf("patch of scale: %v", err)
	}
	scaled, err = all.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || *scaled.Spec.Replicas != 2 {
		t.Fatalf("scaled by a patch: %+v, %v", scaled, err)
	}
	scaled.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	if _, err = all.Update(t.Context(), scaled, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "spec.selector: Invalid value") ||
		!strings.Contains(err.Error(), "field is immutable") {
		t.Errorf("another selector: %v", err)
	}
}

// TestDeploymentApply proves that server-side apply knows the lists of a workload's template (WL-01): two owners of
// different containers do not disturb one another, and of scale, who owns the replicas.
func TestDeploymentApply(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	all := c.AppsV1().Deployments(ns)
	if _, err := all.Create(t.Context(), deployment("web"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	side := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{"template": map[string]any{
			"spec": map[string]any{"containers": []any{map[string]any{"name": "side",
				"image": "registry.example/side:1"}}}}}}
	applied, err := all.Patch(t.Context(), "web", types.ApplyPatchType, []byte(jsonOf(t, side)),
		metav1.PatchOptions{FieldManager: "side"})
	if err != nil || len(applied.Spec.Template.Spec.Containers) != 2 {
		t.Fatalf("%+v, %v", applied, err)
	}
	replicas := applyappsv1.Deployment("web", ns).WithSpec(applyappsv1.DeploymentSpec().WithReplicas(4))
	if _, err := all.Apply(t.Context(), replicas, metav1.ApplyOptions{FieldManager: "me"}); err != nil &&
		!apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	if _, err := all.Apply(t.Context(), replicas, metav1.ApplyOptions{FieldManager: "me", Force: true}); err != nil {
		t.Fatal(err)
	}
	_, err = all.Patch(t.Context(), "web", types.ApplyPatchType,
		[]byte(`{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":5}}`),
		metav1.PatchOptions{FieldManager: "scaler"}, "scale")
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "me"`) {
		t.Errorf("somebody else scales: %v", err)
	}
}

// TestWorkloadsCount proves that a quota counts workloads by their resource's name (WL-01, SC-16), and what they take
// in the store.
func TestWorkloadsCount(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	newQuota(t, c, ns, hard("count/deployments.apps", "1", "wherry.dev/stored-bytes", "1Mi"))
	waitUsed(t, c, ns, "count/deployments.apps", "0")
	all := c.AppsV1().Deployments(ns)
	if _, err := all.Create(t.Context(), deployment("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := all.Create(t.Context(), deployment("b"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("a second: %v", err)
	}
	list, err := c.CoreV1().ResourceQuotas(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q := list.Items[0]
	if used := q.Status.Used["wherry.dev/stored-bytes"]; used.Value() < 300 {
		t.Errorf("stored bytes: %s", used.String())
	}
	if err := all.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := all.Create(t.Context(), deployment("b"), metav1.CreateOptions{}); err != nil {
		t.Errorf("after the first has gone: %v", err)
	}
}

// TestWorkloadTemplatesAndPodSecurity proves that the Pod Security Standard of a namespace warns of the template of a
// workload, whose pods it would refuse, and does not refuse the workload (WL-01, EC-21).
func TestWorkloadTemplatesAndPodSecurity(t *testing.T) {
	said := &warned{}
	config := adminConfig(t)
	config.WarningHandler = said
	c := clientOf(t, config)
	ns := namespace(t, c)
	if _, err := c.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/warn":"baseline"}}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	d := deployment("web")
	d.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	if _, err := c.AppsV1().Deployments(ns).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if want := `would violate PodSecurity "baseline:latest"`; !said.has(want) {
		t.Errorf("no warning %q", want)
	}
}

// TestClientsKeepTheirOwnTypes proves that linking Kubernetes' code changes nothing for kubectl and other clients: what
// they make has no defaults of the server's in it.
func TestClientsKeepTheirOwnTypes(t *testing.T) {
	for name, def := range map[string]func(*corev1.Pod){
		"client-go": func(p *corev1.Pod) { clientscheme.Scheme.Default(p) },
		"kubectl":   func(p *corev1.Pod) { kubectlscheme.Scheme.Default(p) },
	} {
		p := pod("x")
		if def(p); p.Spec.RestartPolicy != "" {
			t.Errorf("%s: restartPolicy %q", name, p.Spec.RestartPolicy)
		}
	}
}
