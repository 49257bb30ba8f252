// SPDX-License-Identifier: Apache-2.0

package authz

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// validateSubjectAccessReview checks that it asks about somebody and one thing.
func validateSubjectAccessReview(spec *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	all := validateAccessAttributes(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		all = append(all, field.Invalid(field.NewPath("spec", "user"), spec.User,
			"at least one of user or group must be specified"))
	}
	return all
}

// validateLocalSubjectAccessReview is validateSubjectAccessReview within a namespace.
func validateLocalSubjectAccessReview(r *authorizationv1.LocalSubjectAccessReview) field.ErrorList {
	all := validateSubjectAccessReview(&r.Spec)
	meta := metav1.ObjectMeta{Namespace: r.Namespace, ManagedFields: r.ManagedFields}
	if !equality.Semantic.DeepEqual(meta, r.ObjectMeta) {
		all = append(all, field.Invalid(field.NewPath("metadata"), r.ObjectMeta, "must be empty except for namespace"))
	}
	if r.Spec.ResourceAttributes != nil && r.Spec.ResourceAttributes.Namespace != r.Namespace {
		all = append(all, field.Invalid(field.NewPath("spec", "resourceAttributes", "namespace"),
			r.Spec.ResourceAttributes.Namespace, "must match metadata.namespace"))
	}
	if r.Spec.NonResourceAttributes != nil {
		all = append(all, field.Invalid(field.NewPath("spec", "nonResourceAttributes"), r.Spec.NonResourceAttributes,
			"disallowed on this kind of request"))
	}
	return all
}

// validateAccessAttributes: a review asks about a resource or about a path.
func validateAccessAttributes(r *authorizationv1.ResourceAttributes,
	n *authorizationv1.NonResourceAttributes) (all field.ErrorList) {
	spec := field.NewPath("spec")
	switch {
	case r != nil && n != nil:
		all = append(all, field.Invalid(spec.Child("nonResourceAttributes"), n,
			"cannot be specified in combination with resourceAttributes"))
	case r == nil && n == nil:
		all = append(all, field.Invalid(spec.Child("resourceAttributes"), r,
			"exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	if r == nil {
		return all
	}
	path := spec.Child("resourceAttributes")
	if f := r.FieldSelector; f != nil {
		all = append(all, oneSelector(path.Child("fieldSelector"), f.RawSelector, len(f.Requirements))...)
		for i := range f.Requirements {
			if f.Requirements[i].Key == "" {
				all = append(all, field.Required(path.Child("fieldSelector", "requirements").Index(i).Child("key"),
					"must be specified"))
			}
		}
	}
	if l := r.LabelSelector; l != nil {
		all = append(all, oneSelector(path.Child("labelSelector"), l.RawSelector, len(l.Requirements))...)
		for i := range l.Requirements {
			if l.Requirements[i].Key == "" {
				all = append(all, field.Required(path.Child("labelSelector", "requirements").Index(i).Child("key"),
					"must be specified"))
			}
		}
	}
	return all
}

func oneSelector(path *field.Path, raw string, requirements int) rules.Errs {
	switch {
	case raw != "" && requirements > 0:
		return rules.Errs{field.Invalid(path.Child("rawSelector"), raw,
			"may not specified at the same time as requirements")}
	case raw == "" && requirements == 0:
		return rules.Errs{field.Required(path.Child("requirements"),
			"when "+path.String()+" is specified, requirements or rawSelector is required")}
	}
	return nil
}
