// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// change installs a mutating policy for one namespace, and returns when it is in effect.
func change(t *testing.T, c kubernetes.Interface, ns string, p *admissionv1.MutatingAdmissionPolicy) {
	t.Helper()
	p.Name, p.Spec.MatchConstraints.NamespaceSelector = ns, only(ns)
	marker := mutatingPolicy(ns+"-marker", rule("serviceaccounts", admissionv1.Create), addLabel("seen", "yes"))
	marker.Spec.MatchConstraints.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"marker": ns}}
	policies, bindings := c.AdmissionregistrationV1().MutatingAdmissionPolicies(),
		c.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	for _, one := range []*admissionv1.MutatingAdmissionPolicy{p, marker} {
		if _, err := policies.Create(t.Context(), one, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := bindings.Create(t.Context(), bindMutating(one.Name, one.Name),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := bindings.Delete(context.Background(), one.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			if err := policies.Delete(context.Background(), one.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	// A policy takes effect when the server has noticed it, of which clients hear nothing.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "marker",
		Labels: map[string]string{"marker": ns}}}
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			made, err := c.CoreV1().ServiceAccounts(ns).Create(ctx, account,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err == nil && made.Labels["seen"] == "yes", err
		})
	if err != nil {
		t.Fatalf("not in effect: %v", err)
	}
}

// SC-22 EC-21: a policy adds a sidecar to pods, as an apply configuration or as a JSON patch; the patch can put it
// first.
func TestPolicyAddsSidecar(t *testing.T) {
	c := client(t)
	for _, tc := range []struct {
		what     string
		mutation admissionv1.Mutation
		place    int
	}{
		{"apply configuration", applied(`Object{spec: Object.spec{initContainers: [
			Object.spec.initContainers{name: "proxy", image: "proxy.example/p:1", restartPolicy: "Always"}]}}`), 1},
		{"JSON patch", jsonPatched(`[JSONPatch{op: "add", path: "/spec/initContainers/0",
			value: Object.spec.initContainers{name: "proxy", image: "proxy.example/p:1", restartPolicy: "Always"}}]`), 0},
	} {
		t.Run(tc.what, func(t *testing.T) {
			ns := namespace(t, c)
			policy := mutatingPolicy("", rule("pods", admissionv1.Create), tc.mutation)
			policy.Spec.MatchConstraints.ResourceRules[0].APIGroups = []string{""}
			policy.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "once",
				Expression: "!object.spec.initContainers.exists(c, c.name == 'proxy')"}}
			change(t, c, ns, policy)
			p := pod("p")
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "registry.example/init:1"}}
			p = createPod(t, c, ns, p)
			if len(p.Spec.InitContainers) != 2 {
				t.Fatalf("init containers %v", p.Spec.InitContainers)
			}
			s := p.Spec.InitContainers[tc.place]
			if s.Name != "proxy" || ptr.Deref(s.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways ||
				s.ImagePullPolicy != corev1.PullIfNotPresent {
				t.Errorf("place %d: %+v", tc.place, s)
			}
		})
	}
}

// EC-21: a mutating policy that cannot be evaluated refuses, unless its failurePolicy is Ignore. What it makes is
// validated.
func TestMutatingPoliciesFailClosed(t *testing.T) {
	c := client(t)
	for _, tc := range []struct {
		what     string
		mutation admissionv1.Mutation
		failure  admissionv1.FailurePolicyType
		want     string
	}{
		{"runtime error", applied(`Object{metadata: Object.metadata{labels: {"a": object.spec.nothing}}}`), "",
			"no such key: spec"},
		{"runtime error and Ignore", applied(`Object{metadata: Object.metadata{labels: {"a": object.spec.nothing}}}`),
			admissionv1.Ignore, ""},
		{"unknown field", applied(`Object{nothing: "x"}`), "", "nothing"},
		{"no place", jsonPatched(`[JSONPatch{op: "replace", path: "/nothing/here", value: "x"}]`), "", "nothing"},
		{"no place and Ignore", jsonPatched(`[JSONPatch{op: "replace", path: "/nothing/here", value: "x"}]`),
			admissionv1.Ignore, ""},
		{"object that is not valid", addLabel("a b", "c"), "", "metadata.labels: Invalid value"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			t.Parallel() // as the validating ones
			ns := namespace(t, c)
			policy := mutatingPolicy("", rule("configmaps", admissionv1.Create), tc.mutation)
			if tc.failure != "" {
				policy.Spec.FailurePolicy = &tc.failure
			}
			change(t, c, ns, policy)
			_, err := try(t, c, ns)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want a refusal with %q", err, tc.want)
			}
		})
	}
}
