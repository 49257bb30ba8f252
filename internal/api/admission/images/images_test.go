// SPDX-License-Identifier: Apache-2.0

package images

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

// TestImagePoliciesFailClosed proves EC-21: where it cannot be known what the policies say, no image gets into a pod,
// and pods that take no new image are not held up.
func TestImagePoliciesFailClosed(t *testing.T) {
	pod := func(image string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
	}
	attributes := func(now, old *corev1.Pod) admission.Attributes {
		v1 := corev1.SchemeGroupVersion
		op := admission.Create
		if old != nil {
			op = admission.Update
			return admission.NewAttributesRecord(now, old, v1.WithKind("Pod"), "ns", "p", v1.WithResource("pods"), "",
				op, nil, false, nil)
		}
		return admission.NewAttributesRecord(now, nil, v1.WithKind("Pod"), "ns", "p", v1.WithResource("pods"), "", op,
			nil, false, nil)
	}
	namespace := func(context.Context, string) (*corev1.Namespace, error) { return &corev1.Namespace{}, nil }
	away := func(context.Context, string) (*corev1.Namespace, error) { return nil, errors.New("etcd is away") }
	odd := imagepolicy.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "odd"}, Spec: imagepolicy.ImagePolicySpec{
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a",
			Operator: "Like"}}}}}
	newer := imagepolicy.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "newer"},
		Spec: imagepolicy.ImagePolicySpec{Deny: []string{"**"}, Action: "Quarantine"}}
	for _, row := range []struct {
		name   string
		plugin *Plugin
		now    *corev1.Pod
		old    *corev1.Pod
		want   string // "" = it passes
		closed bool   // for a failure of the server, not for a policy
	}{
		{"no policies", &Plugin{Namespace: away}, pod("a"), nil, "", false},
		{"the namespace cannot be read", &Plugin{Namespace: away, Fixed: []imagepolicy.ImagePolicy{{}}},
			pod("a"), nil, "etcd is away", true},
		{"but no image is new", &Plugin{Namespace: away, Fixed: []imagepolicy.ImagePolicy{{}}}, pod("a"),
			pod("a"), "", false},
		{"a selector that means nothing", &Plugin{Namespace: namespace, Fixed: []imagepolicy.ImagePolicy{odd}},
			pod("b"), pod("a"), "policy odd:", true},
		{"an action of a newer version", &Plugin{Namespace: namespace, Fixed: []imagepolicy.ImagePolicy{newer}},
			pod("a"), nil, `image "a" is denied by **`, false},
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

// TestImageIDs proves RS-12: an image called by its id is judged by what the nodes call it, asked of the node where the
// pod is, and refused where they do not say. ATTACK A23.
func TestImageIDs(t *testing.T) {
	const id = "sha256:5905453c494f"
	noEvil := imagepolicy.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "no-evil"}, Spec: imagepolicy.ImagePolicySpec{
		Allow: []string{"**"}, Deny: []string{"evil.test/**"}, Action: imagepolicy.Enforce}}
	for _, row := range []struct {
		name  string
		image string
		names []string
		err   error
		want  string // "" = it passes
	}{
		{"an image that is denied", id, []string{"evil.test/evil:1"}, nil,
			`stands for image "evil.test/evil:1" is denied by evil.test/**`},
		{"another", id, []string{"good.test/good:1"}, nil, ""},
		{"an unknown one", id, nil, nil, "no node knows a name"},
		{"the node does not answer", id, nil, errors.New("node n: no route to host"),
			"its names cannot be checked now: node n: no route to host"},
		{"a name", "good.test/good:1", []string{"evil.test/evil:1"}, nil, ""},
	} {
		asked := 0
		plugin := &Plugin{
			Namespace: func(context.Context, string) (*corev1.Namespace, error) { return &corev1.Namespace{}, nil },
			Fixed:     []imagepolicy.ImagePolicy{noEvil, noEvil},
			Names: func(_ context.Context, node, asks string) ([]string, error) {
				if asked++; node != "here" || asks != row.image {
					t.Errorf("%s: node %q was asked for %q", row.name, node, asks)
				}
				return row.names, row.err
			},
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "here",
			Containers: []corev1.Container{{Name: "main", Image: row.image}, {Name: "twin", Image: row.image}}}}
		v1 := corev1.SchemeGroupVersion
		err := plugin.Validate(t.Context(), admission.NewAttributesRecord(pod, nil, v1.WithKind("Pod"), "ns", "p",
			v1.WithResource("pods"), "", admission.Create, nil, false, nil), nil)
		if row.want == "" && err != nil || row.want != "" &&
			(err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
		if asked > 1 {
			t.Errorf("%s: the nodes were asked %d times", row.name, asked)
		}
	}
}
