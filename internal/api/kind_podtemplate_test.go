// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestPodTemplates proves that a pod template has a pod's defaults, is held to a pod's rules, and counts its changes.
func TestPodTemplates(t *testing.T) {
	said := &warned{}
	config := adminConfig(t)
	config.WarningHandler = said
	c := clientOf(t, config)
	ns := namespace(t, c)
	templates := c.CoreV1().PodTemplates(ns)
	sample := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"},
		Template: corev1.PodTemplateSpec{Spec: pod("x").Spec}}
	sample.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](-1)
	made, err := templates.Create(t.Context(), sample, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := made.Template.Spec
	if made.Generation != 1 || spec.RestartPolicy != corev1.RestartPolicyAlways ||
		spec.Containers[0].TerminationMessagePath == "" || *spec.TerminationGracePeriodSeconds != -1 {
		t.Errorf("generation %d, %+v", made.Generation, spec)
	}
	if want := "template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"; !said.has(want) {
		t.Errorf("no warning %q", want)
	}
	made.Labels = map[string]string{"a": "b"}
	if made, err = templates.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil || made.Generation != 1 {
		t.Errorf("a label: generation %d, %v", made.Generation, err)
	}
	made.Template.Spec.Containers[0].Image = "registry.example/app:2"
	if made, err = templates.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil || made.Generation != 2 {
		t.Errorf("another image: generation %d, %v", made.Generation, err)
	}
	made.Template.Spec.Containers[0].Image = ""
	if _, err = templates.Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "template.spec.containers[0].image: Required value") {
		t.Errorf("no image: %v", err)
	}
}

// TestComponentStatuses proves that the parts of the control plane are there for who asks, all and each.
func TestComponentStatuses(t *testing.T) {
	statuses := client(t).CoreV1().ComponentStatuses()
	list, err := statuses.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 3 {
		t.Errorf("%+v", list.Items)
	}
	for _, c := range list.Items {
		one, err := statuses.Get(t.Context(), c.Name, metav1.GetOptions{})
		if err != nil || len(one.Conditions) != 1 || one.Conditions[0].Status != corev1.ConditionTrue {
			t.Errorf("%+v, %v", one, err)
		}
	}
	if _, err := statuses.Get(t.Context(), "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	list, err = statuses.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=etcd-0"})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}
