// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Aggregate puts together the rules of a ClusterRole with an aggregation rule: those of all roles that one of its
// selectors chooses, each once, in the order of the roles' names. It fails on a selector that is none, which validation
// refuses.
func Aggregate(role *rbacv1.ClusterRole, all []*rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	if role.AggregationRule == nil {
		return role.Rules, nil
	}
	sorted := slices.SortedFunc(slices.Values(all),
		func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
	var rules []rbacv1.PolicyRule
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, fmt.Errorf("cluster role %s: aggregationRule.clusterRoleSelectors[%d]: %w", role.Name, i, err)
		}
		for _, other := range sorted {
			if other.Name == role.Name || !selector.Matches(labels.Set(other.Labels)) {
				continue
			}
			rules = appendNew(rules, other.Rules)
		}
	}
	return rules, nil
}

func appendNew(rules, more []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for _, r := range more {
		if !slices.ContainsFunc(rules,
			func(have rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(have, r) }) {
			rules = append(rules, r)
		}
	}
	return rules
}
