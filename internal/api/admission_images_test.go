// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/wherryproject/wherry/internal/api/imagepolicy"
)

// TestImagePoliciesFailClosed proves EC-21: where it cannot be known what the policies say, no image gets into a pod, and pods that
// take no new image are not held up.
func TestImagePoliciesFailClosed(t *testing.T) {
	pod := func(image string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
	}
	attributes := func(now, old *corev1.Pod) admission.Attributes {
		v1 := corev1.SchemeGroupVersion
		op := admission.Create
		if old != nil {
			op = admission.Update
			return admission.NewAttributesRecord(now, old, v1.WithKind("Pod"), "ns", "p", v1.WithResource("pods"), "", op, nil, false, nil)
		}
		return admission.NewAttributesRecord(now, nil, v1.WithKind("Pod"), "ns", "p", v1.WithResource("pods"), "", op, nil, false, nil)
	}
	known := &ruled{names: map[string]bool{}, loaded: true}
	namespace := func(context.Context, string) (*corev1.Namespace, error) { return &corev1.Namespace{}, nil }
	away := func(context.Context, string) (*corev1.Namespace, error) { return nil, errors.New("etcd is away") }
	odd := imagepolicy.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "odd"}, Spec: imagepolicy.ImagePolicySpec{
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}}}
	newer := imagepolicy.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "newer"}, Spec: imagepolicy.ImagePolicySpec{Deny: []string{"**"}, Action: "Quarantine"}}
	for _, row := range []struct {
		name   string
		plugin *imagePolicies
		now    *corev1.Pod
		old    *corev1.Pod
		want   string // "" = it passes
		closed bool   // for a failure of the server, not for a policy
	}{
		{"no policies", &imagePolicies{namespace: away, stored: known}, pod("a"), nil, "", false},
		{"the namespace cannot be read", &imagePolicies{namespace: away, stored: known, fixed: []imagepolicy.ImagePolicy{{}}}, pod("a"), nil, "etcd is away", true},
		{"but no image is new", &imagePolicies{namespace: away, stored: known, fixed: []imagepolicy.ImagePolicy{{}}}, pod("a"), pod("a"), "", false},
		{"a selector that means nothing", &imagePolicies{namespace: namespace, stored: known, fixed: []imagepolicy.ImagePolicy{odd}}, pod("b"), pod("a"), "policy odd:", true},
		{"an action of a newer version", &imagePolicies{namespace: namespace, stored: known, fixed: []imagepolicy.ImagePolicy{newer}}, pod("a"), nil, `image "a" is denied by **`, false},
	} {
		err := row.plugin.Validate(t.Context(), attributes(row.now, row.old), nil)
		switch {
		case row.want == "" && err != nil, row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		case row.want != "" && apierrors.IsInternalError(err) != row.closed:
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// TestImagePoliciesOfAnotherServer proves EC-21: the first policy that another server on the same etcd has stored holds here too.
func TestImagePoliciesOfAnotherServer(t *testing.T) {
	here, there, stop := twoServers(t)
	defer stop()
	policy := `{"apiVersion":"` + imagepolicy.GroupVersion().String() + `","kind":"ImagePolicy","metadata":{"name":"none"},"spec":{"deny":["**"]}}`
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "a"}}}}
	if _, err := here.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatalf("without a policy: %v", err)
	}
	if err := there.Discovery().RESTClient().Post().AbsPath("/apis/"+imagepolicy.GroupVersion().String()+"/"+imagepolicy.Resource).
		SetHeader("Content-Type", "application/json").Body([]byte(policy)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	comesToHold(t, func(ctx context.Context) bool {
		_, err := here.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		return apierrors.IsForbidden(err)
	})
}
