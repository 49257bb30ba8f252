// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"
)

// TestRandomObjects: nothing panics on objects filled at random, judging changes nothing, defaults are idempotent.
func TestRandomObjects(t *testing.T) {
	random(t, SetDefaultsConfigMap, ValidateConfigMap, ValidateConfigMapUpdate)
	random(t, SetDefaultsSecret, ValidateSecret, ValidateSecretUpdate)
	random(t, SetDefaultsNamespace, ValidateNamespace, ValidateNamespaceStatusUpdate)
	random(t, SetDefaultsService, ValidateService, ValidateServiceUpdate)
	random(t, SetDefaultsNode, ValidateNode, ValidateNodeUpdate)
	random(t, SetDefaultsLimitRange, ValidateLimitRange, ValidateLimitRangeUpdate)
	random(t, SetDefaultsEndpointSlice, ValidateEndpointSlice, ValidateEndpointSliceUpdate)
	random(t, func(*corev1.ResourceQuota) {}, ValidateResourceQuota, ValidateResourceQuotaUpdate)
	random(t, func(*corev1.ServiceAccount) {}, ValidateServiceAccount, ValidateServiceAccountUpdate)
	random(t, func(*corev1.Event) {}, ValidateEvent, func(now, _ *corev1.Event) field.ErrorList { return ValidateEvent(now) })
	random(t, func(*eventsv1.Event) {}, ValidateEventV1, ValidateEventV1Update)
	random(t, func(*coordinationv1.Lease) {}, ValidateLease, ValidateLeaseUpdate)
}

func random[T any](t *testing.T, defaults func(*T), validate func(*T) field.ErrorList, update func(now, was *T) field.ErrorList) {
	t.Helper()
	fill := randfill.NewWithSeed(1).NilChance(0.3).NumElements(0, 2).Funcs(func(q *resource.Quantity, c randfill.Continue) {
		*q = *resource.NewMilliQuantity(c.Int63n(1<<40)-1<<20, resource.DecimalSI)
	})
	for range 100 {
		now, was := new(T), new(T)
		fill.Fill(now)
		fill.Fill(was)
		validate(now)
		defaults(now)
		once := copyOf(now)
		defaults(now)
		for _, e := range append(validate(now), update(now, was)...) {
			_ = e.Error()
		}
		if !equality.Semantic.DeepEqual(once, now) {
			t.Fatalf("%T: defaults are not idempotent, or judging changes", now)
		}
	}
}

func copyOf[T any](obj *T) *T {
	type copier interface{ DeepCopy() *T }
	return any(obj).(copier).DeepCopy()
}
