// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/validation"
)

func configMapRules() registry.Rules {
	return registry.Typed[*corev1.ConfigMap]{
		Validate:       validation.ValidateConfigMap,
		ValidateUpdate: validation.ValidateConfigMapUpdate,
	}.Rules()
}

func secretRules() registry.Rules {
	return registry.Typed[*corev1.Secret]{
		Validate:       validation.ValidateSecret,
		ValidateUpdate: validation.ValidateSecretUpdate,
	}.Rules()
}

func secretFields(obj runtime.Object) fields.Set {
	return fields.Set{"type": string(obj.(*corev1.Secret).Type)}
}

func serviceAccountRules() registry.Rules {
	names := func(s *corev1.ServiceAccount) { // of a secret only the name is kept: it is in the account's own namespace
		for i := range s.Secrets {
			s.Secrets[i] = corev1.ObjectReference{Name: s.Secrets[i].Name}
		}
	}
	return registry.Typed[*corev1.ServiceAccount]{
		PrepareCreate:  names,
		PrepareUpdate:  func(s, _ *corev1.ServiceAccount) { names(s) },
		Validate:       validation.ValidateServiceAccount,
		ValidateUpdate: validation.ValidateServiceAccountUpdate,
		Warn:           serviceAccountWarnings,
	}.Rules()
}

func endpointsRules() registry.Rules {
	return registry.Typed[*corev1.Endpoints]{
		Validate:       validation.ValidateEndpoints,
		ValidateUpdate: validation.ValidateEndpointsUpdate,
		CreateOnUpdate: true,
	}.Rules()
}

func limitRangeRules() registry.Rules {
	return registry.Typed[*corev1.LimitRange]{
		Validate:       validation.ValidateLimitRange,
		ValidateUpdate: validation.ValidateLimitRangeUpdate,
		CreateOnUpdate: true,
	}.Rules()
}

func resourceQuotaRules() registry.Rules {
	return registry.Typed[*corev1.ResourceQuota]{
		PrepareCreate:  func(q *corev1.ResourceQuota) { q.Status = corev1.ResourceQuotaStatus{} },
		Validate:       validation.ValidateResourceQuota,
		PrepareUpdate:  keepCount,
		ValidateUpdate: validation.ValidateResourceQuotaUpdate,
		Warn:           quotaWarnings,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.Rules()
}

// ResourceQuotaStatusRules are those of who counts.
func ResourceQuotaStatusRules() registry.Rules {
	return registry.Typed[*corev1.ResourceQuota]{
		PrepareUpdate:  func(q, old *corev1.ResourceQuota) { q.Spec = old.Spec },
		ValidateUpdate: validation.ValidateResourceQuotaStatusUpdate,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.Rules()
}

func endpointSliceRules() registry.Rules {
	return registry.Typed[*discoveryv1.EndpointSlice]{
		PrepareCreate: func(s *discoveryv1.EndpointSlice) { s.Generation = 1 },
		Validate:      validation.ValidateEndpointSlice,
		PrepareUpdate: func(s, old *discoveryv1.EndpointSlice) {
			a, b := *s, *old
			a.ObjectMeta, b.ObjectMeta = metav1.ObjectMeta{Labels: s.Labels}, metav1.ObjectMeta{Labels: old.Labels}
			a.TypeMeta, b.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
			if !equality.Semantic.DeepEqual(a, b) {
				s.Generation++
			}
		},
		ValidateUpdate: validation.ValidateEndpointSliceUpdate,
	}.Rules()
}

func leaseRules() registry.Rules {
	return registry.Typed[*coordinationv1.Lease]{
		PrepareCreate:  func(l *coordinationv1.Lease) { dropElection(&l.Spec) },
		PrepareUpdate:  func(l, _ *coordinationv1.Lease) { dropElection(&l.Spec) },
		Validate:       validation.ValidateLease,
		ValidateUpdate: validation.ValidateLeaseUpdate,
		CreateOnUpdate: true,
		MustHaveRV:     true,
	}.Rules()
}

// dropElection takes away what only a coordinator of leader elections would heed: there is none, and Kubernetes, where
// it is off by default, does not keep it either.
func dropElection(s *coordinationv1.LeaseSpec) {
	s.Strategy, s.PreferredHolder = nil, nil
}

// keepCount keeps what was counted, unless it was counted of other objects: then a count is due, as for a new quota.
func keepCount(q, old *corev1.ResourceQuota) {
	q.Status = old.Status
	if !equality.Semantic.DeepEqual(q.Spec.ScopeSelector, old.Spec.ScopeSelector) {
		q.Status = corev1.ResourceQuotaStatus{}
	}
}
