// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/api/quota"
)

// TestChangedSelectorIsCountedAnew: a quota's selector may change, and what was counted of the pods that it selected before is no
// count of those that it selects now.
func TestChangedSelectorIsCountedAnew(t *testing.T) {
	counted := func(class string) *corev1.ResourceQuota {
		hard := corev1.ResourceList{"pods": resource.MustParse("10")}
		return &corev1.ResourceQuota{
			Spec: corev1.ResourceQuotaSpec{Hard: hard, ScopeSelector: &corev1.ScopeSelector{
				MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: "PriorityClass", Operator: "In", Values: []string{class}}},
			}},
			Status: corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{"pods": resource.MustParse("3")}},
		}
	}
	rules := resourceQuotaRules()
	same, other := counted("high"), counted("low")
	rules.PrepareUpdate(same, counted("high"))
	rules.PrepareUpdate(other, counted("high"))
	if !quota.UpToDate(same) {
		t.Error("an update that changes nothing made the count void")
	}
	if quota.UpToDate(other) {
		t.Error("a changed selector keeps the count of what it selected before")
	}
}
