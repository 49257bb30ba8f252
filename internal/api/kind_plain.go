// SPDX-License-Identifier: Apache-2.0

package api

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/validation"
)

func configMapRules() rules {
	return typed[*corev1.ConfigMap]{
		validate:       validation.ValidateConfigMap,
		validateUpdate: validation.ValidateConfigMapUpdate,
	}.rules()
}

func secretRules() rules {
	return typed[*corev1.Secret]{
		validate:       validation.ValidateSecret,
		validateUpdate: validation.ValidateSecretUpdate,
	}.rules()
}

func secretFields(obj runtime.Object) fields.Set {
	return fields.Set{"type": string(obj.(*corev1.Secret).Type)}
}

func serviceAccountRules() rules {
	names := func(s *corev1.ServiceAccount) { // of a secret only the name is kept: it is in the account's own namespace
		for i := range s.Secrets {
			s.Secrets[i] = corev1.ObjectReference{Name: s.Secrets[i].Name}
		}
	}
	return typed[*corev1.ServiceAccount]{
		prepareCreate:  names,
		prepareUpdate:  func(s, _ *corev1.ServiceAccount) { names(s) },
		validate:       validation.ValidateServiceAccount,
		validateUpdate: validation.ValidateServiceAccountUpdate,
		warn:           serviceAccountWarnings,
	}.rules()
}

func endpointsRules() rules {
	return typed[*corev1.Endpoints]{
		validate:       validation.ValidateEndpoints,
		validateUpdate: validation.ValidateEndpointsUpdate,
		createOnUpdate: true,
	}.rules()
}

func limitRangeRules() rules {
	return typed[*corev1.LimitRange]{
		validate:       validation.ValidateLimitRange,
		validateUpdate: validation.ValidateLimitRangeUpdate,
		createOnUpdate: true,
	}.rules()
}

func resourceQuotaRules() rules {
	return typed[*corev1.ResourceQuota]{
		prepareCreate:  func(q *corev1.ResourceQuota) { q.Status = corev1.ResourceQuotaStatus{} },
		validate:       validation.ValidateResourceQuota,
		prepareUpdate:  keepCount,
		validateUpdate: validation.ValidateResourceQuotaUpdate,
		warn:           quotaWarnings,
		reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.rules()
}

func resourceQuotaStatusRules() rules {
	return typed[*corev1.ResourceQuota]{
		prepareUpdate:  func(q, old *corev1.ResourceQuota) { q.Spec = old.Spec },
		validateUpdate: validation.ValidateResourceQuotaStatusUpdate,
		reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.rules()
}

func endpointSliceRules() rules {
	return typed[*discoveryv1.EndpointSlice]{
		prepareCreate: func(s *discoveryv1.EndpointSlice) { s.Generation = 1 },
		validate:      validation.ValidateEndpointSlice,
		prepareUpdate: func(s, old *discoveryv1.EndpointSlice) {
			a, b := *s, *old
			a.ObjectMeta, b.ObjectMeta = metav1.ObjectMeta{Labels: s.Labels}, metav1.ObjectMeta{Labels: old.Labels}
			a.TypeMeta, b.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
			if !equality.Semantic.DeepEqual(a, b) {
				s.Generation++
			}
		},
		validateUpdate: validation.ValidateEndpointSliceUpdate,
	}.rules()
}

func leaseRules() rules {
	return typed[*coordinationv1.Lease]{
		prepareCreate:  func(l *coordinationv1.Lease) { dropElection(&l.Spec) },
		prepareUpdate:  func(l, _ *coordinationv1.Lease) { dropElection(&l.Spec) },
		validate:       validation.ValidateLease,
		validateUpdate: validation.ValidateLeaseUpdate,
		createOnUpdate: true,
		mustHaveRV:     true,
	}.rules()
}

// dropElection takes away what only a coordinator of leader elections would heed: there is none, and Kubernetes, where it is off by
// default, does not keep it either.
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
