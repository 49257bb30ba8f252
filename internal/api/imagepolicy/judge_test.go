// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestJudge proves EC-21 IX-07: what a policy has against an image, and that it says what would be allowed.
func TestJudge(t *testing.T) {
	const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	ours := ImagePolicySpec{Allow: []string{"registry.example/**", "wherry.dev/toolbox*"}}
	for _, row := range []struct {
		name   string
		policy ImagePolicySpec
		image  string
		want   string // part of what is said; "" = nothing
	}{
		{"allowed", ours, "registry.example/team/app:1", ""},
		{"the built-in toolbox is an image as any other", ours, "wherry.dev/toolbox", ""},
		{"and needs a pattern", ImagePolicySpec{Allow: []string{"registry.example/**"}}, "wherry.dev/toolbox", "is not allowed; allowed are registry.example/**"},
		{"not allowed", ours, "nginx:1", `image "nginx:1" is not allowed; allowed are registry.example/**, wherry.dev/toolbox*`},
		{"looks alike", ours, "registry.example.evil/app", "is not allowed"},
		{"no list allows all", ImagePolicySpec{Deny: []string{"evil/*"}}, "nginx", ""},
		{"denied", ImagePolicySpec{Deny: []string{"evil/*"}}, "docker.io/evil/app:1", `image "docker.io/evil/app:1" is denied by evil/*`},
		{"deny stands above allow", ImagePolicySpec{Allow: []string{"**"}, Deny: []string{"nginx"}}, "nginx:1.27", "is denied by nginx; allowed are **"},
		{"a digest does not get past a denied tag", ImagePolicySpec{Deny: []string{"nginx:1"}}, "nginx:1" + digest, "is denied by nginx:1"},
		{"without a digest", ImagePolicySpec{RequireDigest: true}, "nginx:1", "is named without a digest; name it as docker.io/library/nginx@sha256:…"},
		{"with a digest", ImagePolicySpec{RequireDigest: true}, "nginx" + digest, ""},
		{"with tag and digest", ImagePolicySpec{RequireDigest: true}, "nginx:1" + digest, ""},
		{"a digest alone is not enough", ImagePolicySpec{RequireDigest: true, Allow: []string{"registry.example/**"}}, "nginx" + digest, "allowed are registry.example/**, with a digest"},
		{"no name of an image", ImagePolicySpec{Deny: []string{"x"}}, "Not An Image", "cannot check image"},
	} {
		if got := row.policy.Judge(row.image); (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// TestConcerns proves EC-21: a policy is about the namespaces it names or selects, or about all.
func TestConcerns(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}}
	for _, row := range []struct {
		policy ImagePolicySpec
		want   bool
	}{
		{ImagePolicySpec{}, true},
		{ImagePolicySpec{Namespaces: []string{"x", "shop"}}, true},
		{ImagePolicySpec{Namespaces: []string{"x"}}, false},
		{ImagePolicySpec{NamespaceSelector: &metav1.LabelSelector{}}, true},
		{ImagePolicySpec{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}, true},
		{ImagePolicySpec{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}}, false},
	} {
		if got, err := row.policy.Concerns(ns); err != nil || got != row.want {
			t.Errorf("%+v: %t, %v", row.policy, got, err)
		}
	}
	odd := ImagePolicySpec{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}}
	if _, err := odd.Concerns(ns); err == nil {
		t.Error("a selector that means nothing is not an error")
	}
}

// TestNew proves EC-21: every way in which a pod's spec names an image counts, and what was there before does not.
func TestNew(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	spec := &corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "i", Image: "init"}, {Name: "s", Image: "side", RestartPolicy: &always}},
		Containers:     []corev1.Container{{Name: "m", Image: "main"}},
		EphemeralContainers: []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e", Image: "debug"}}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "data"}}}, {Name: "plain"}},
	}
	want := `[{init init container "i"} {side init container "s"} {main container "m"} {debug ephemeral container "e"} {data image volume "v"}]`
	if got := fmt.Sprint(New(spec, nil)); got != want {
		t.Errorf("new pod: %s", got)
	}
	if got := New(spec, spec.DeepCopy()); len(got) > 0 {
		t.Errorf("nothing has changed: %v", got)
	}
	now := spec.DeepCopy()
	now.Containers[0].Image = "debug" // an image the pod has, elsewhere
	now.EphemeralContainers[0].Name = "again"
	if got := fmt.Sprint(New(now, spec)); got != `[{debug container "m"} {debug ephemeral container "again"}]` {
		t.Errorf("changed: %s", got)
	}
}

// TestCopies: a copy shares nothing with the original.
func TestCopies(t *testing.T) {
	p := &ImagePolicyList{Items: []ImagePolicy{{Spec: ImagePolicySpec{Namespaces: []string{"a"}, Allow: []string{"a"}, Deny: []string{"a"}, RequireDigest: true,
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "a"}}}}}}
	c := p.DeepCopyObject().(*ImagePolicyList)
	if !equality.Semantic.DeepEqual(p, c) {
		t.Fatalf("%+v", c)
	}
	s := &c.Items[0].Spec
	s.Namespaces[0], s.Allow[0], s.Deny[0], s.NamespaceSelector.MatchLabels["a"] = "b", "b", "b", "b"
	if was := p.Items[0].Spec; was.Namespaces[0]+was.Allow[0]+was.Deny[0]+was.NamespaceSelector.MatchLabels["a"] != "aaaa" {
		t.Error("the copy shares something with the original")
	}
	if SetDefaults(&c.Items[0]); s.Action != Enforce {
		t.Errorf("action %q", s.Action)
	}
}
