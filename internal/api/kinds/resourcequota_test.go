// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/api/quota"
)

// An entry of a quota that limits nothing is warned about; one for a kind that somebody may define is not, as those count.
func TestQuotaWarnings(t *testing.T) {
	warned := map[corev1.ResourceName]bool{"count/pods": false, "count/deployments.apps": false, "count/boats.harbour.example.com": false, "pods": false,
		"count/nosuch": true, "count/nosuch.apps": true, "gpu.deviceclass.resource.k8s.io/devices": true}
	for name, want := range warned {
		q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse("1")}}}
		if got := len(quotaWarnings(q, nil)) > 0; got != want {
			t.Errorf("%s: warned: %t", name, got)
		}
		if len(quotaWarnings(q, q)) > 0 {
			t.Errorf("%s: warned of again", name)
		}
	}
}

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
