// SPDX-License-Identifier: Apache-2.0

package validation

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// ValidateLease checks durations and counts.
func ValidateLease(l *coordinationv1.Lease) field.ErrorList {
	return append(rules.Meta(&l.ObjectMeta, apivalidation.NameIsDNSSubdomain),
		leaseSpec(&l.Spec, field.NewPath("spec"))...)
}

// ValidateLeaseUpdate is ValidateLease for a changed one.
func ValidateLeaseUpdate(now, was *coordinationv1.Lease) field.ErrorList {
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), leaseSpec(&now.Spec, field.NewPath("spec"))...)
}

func leaseSpec(s *coordinationv1.LeaseSpec, path *field.Path) (all rules.Errs) {
	if d := s.LeaseDurationSeconds; d != nil && *d <= 0 {
		all = append(all, field.Invalid(path.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := s.LeaseTransitions; n != nil && *n < 0 {
		all = append(all, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	if s.Strategy != nil {
		all = append(all, rules.OneOf(path.Child("strategy"), *s.Strategy, coordinationv1.OldestEmulationVersion)...)
	}
	if s.PreferredHolder != nil && *s.PreferredHolder != "" && s.Strategy == nil {
		all = append(all, field.Forbidden(path.Child("preferredHolder"),
			"may only be specified if `strategy` is defined"))
	}
	return all
}
