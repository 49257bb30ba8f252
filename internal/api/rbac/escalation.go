// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Missing are the rights that wanted gives and have does not, each as a rule of one verb; none means that who has the
// one may grant the other.
func Missing(have, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	_, missing := validation.Covers(have, wanted)
	return missing
}

// Everything are the rules of one who may do all.
func Everything() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll},
			Verbs: []string{rbacv1.VerbAll}},
		{NonResourceURLs: []string{rbacv1.NonResourceAll}, Verbs: []string{rbacv1.VerbAll}},
	}
}

// Words write rules for a person, one in a line, what differs only in the verb together.
func Words(rules []rbacv1.PolicyRule) string {
	var lines []string
	for _, r := range together(rules) {
		var parts []string
		for _, part := range []struct {
			name  string
			items []string
		}{
			{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"ResourceNames", r.ResourceNames},
			{"NonResourceURLs", r.NonResourceURLs}, {"Verbs", r.Verbs},
		} {
			if len(part.items) > 0 {
				parts = append(parts, fmt.Sprintf("%s:[%s]", part.name, quoted(part.items)))
			}
		}
		lines = append(lines, "{"+strings.Join(parts, ", ")+"}")
	}
	return strings.Join(lines, "\n")
}

func quoted(items []string) string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = fmt.Sprintf("%q", item)
	}
	return strings.Join(out, ", ")
}

func together(rules []rbacv1.PolicyRule) (out []rbacv1.PolicyRule) {
	for _, r := range rules {
		i := slices.IndexFunc(out, func(o rbacv1.PolicyRule) bool {
			return slices.Equal(o.APIGroups, r.APIGroups) && slices.Equal(o.Resources, r.Resources) &&
				slices.Equal(o.ResourceNames, r.ResourceNames) && slices.Equal(o.NonResourceURLs, r.NonResourceURLs)
		})
		if i < 0 {
			out = append(out, *r.DeepCopy())
			continue
		}
		for _, verb := range r.Verbs {
			if !slices.Contains(out[i].Verbs, verb) {
				out[i].Verbs = append(out[i].Verbs, verb)
			}
		}
	}
	for i := range out {
		slices.Sort(out[i].Verbs)
	}
	slices.SortStableFunc(out, func(a, b rbacv1.PolicyRule) int {
		return strings.Compare(strings.Join(append(a.APIGroups, a.Resources...), "\x00"),
			strings.Join(append(b.APIGroups, b.Resources...), "\x00"))
	})
	return out
}
