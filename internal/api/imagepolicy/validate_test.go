// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestImagePolicy proves EC-21: a policy that cannot be understood is not stored.
func TestImagePolicy(t *testing.T) {
	good := func() *ImagePolicy {
		p := &ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "ours", ResourceVersion: "1"}, Spec: ImagePolicySpec{
			Namespaces: []string{"a", "b"}, Allow: []string{"registry.example/**"}, Deny: []string{"nginx"}}}
		SetDefaults(p)
		return p
	}
	if errs := Validate(good()); len(errs) > 0 {
		t.Fatalf("a good one: %v", errs)
	}
	type ip = ImagePolicy
	for name, c := range map[string]struct {
		spoil       func(*ip)
		field, word string
	}{
		"name":   {func(p *ip) { p.Name = "A" }, "metadata.name", ""},
		"action": {func(p *ip) { p.Spec.Action = "Shout" }, "spec.action", "Unsupported"},
		"both": {func(p *ip) { p.Spec.NamespaceSelector = &metav1.LabelSelector{} }, "spec.namespaceSelector",
			"together with namespaces"},
		"selector": {func(p *ip) {
			p.Spec.Namespaces = nil
			p.Spec.NamespaceSelector = &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
		}, "spec.namespaceSelector.matchExpressions[0].operator", ""},
		"namespace":        {func(p *ip) { p.Spec.Namespaces[1] = "A" }, "spec.namespaces[1]", ""},
		"namespaces alike": {func(p *ip) { p.Spec.Namespaces[1] = "a" }, "spec.namespaces[1]", "Duplicate"},
		"pattern":          {func(p *ip) { p.Spec.Allow[0] = "a[" }, "spec.allow[0]", "is not a pattern"},
		"denying pattern":  {func(p *ip) { p.Spec.Deny = append(p.Spec.Deny, "") }, "spec.deny[1]", "is not a pattern"},
		"nothing": {func(p *ip) { p.Spec.Allow, p.Spec.Deny = nil, nil }, "spec.allow",
			"at least one of allow, deny and requireDigest"},
		"an action taken away": {func(p *ip) { p.Spec.Action = "" }, "spec.action", "Required"},
	} {
		t.Run(name, func(t *testing.T) {
			p := good()
			c.spoil(p)
			for when, errs := range map[string][]error{"create": asErrors(Validate(p)),
				"update": asErrors(ValidateUpdate(p, p.DeepCopy()))} {
				found := false
				for _, err := range errs {
					found = found || strings.HasPrefix(err.Error(), c.field+":") && strings.Contains(err.Error(), c.word)
				}
				if !found {
					t.Errorf("%s: want an error at %s with %q, got %v", when, c.field, c.word, errs)
				}
			}
		})
	}
	digest := good()
	digest.Spec.Allow, digest.Spec.Deny, digest.Spec.RequireDigest = nil, nil, true
	if errs := ValidateUpdate(digest, good()); len(errs) > 0 {
		t.Errorf("a digest alone: %v", errs)
	}
}

func asErrors[E error](list []E) (all []error) {
	for _, e := range list {
		all = append(all, e)
	}
	return all
}
