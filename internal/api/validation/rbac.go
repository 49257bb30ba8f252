// SPDX-License-Identifier: Apache-2.0

package validation

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// roleName: names of roles and bindings may have colons and capitals, all that a path can hold.
func roleName(name string, prefix bool) []string { return path.ValidatePathSegmentName(name, prefix) }

// SetDefaultsRoleBinding fills in the API groups of role and subjects.
func SetDefaultsRoleBinding(b *rbacv1.RoleBinding) { defaultRefs(&b.RoleRef, b.Subjects) }

// SetDefaultsClusterRoleBinding is SetDefaultsRoleBinding for the cluster's.
func SetDefaultsClusterRoleBinding(b *rbacv1.ClusterRoleBinding) { defaultRefs(&b.RoleRef, b.Subjects) }

func defaultRefs(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	rules.OrElse(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if s := &subjects[i]; s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind {
			rules.OrElse(&s.APIGroup, rbacv1.GroupName)
		}
	}
}

// ValidateRole checks the rules.
func ValidateRole(r *rbacv1.Role) field.ErrorList {
	return append(rules.Meta(&r.ObjectMeta, roleName), policyRules(r.Rules, true)...)
}

// ValidateRoleUpdate checks metadata and rules.
func ValidateRoleUpdate(now, was *rbacv1.Role) field.ErrorList {
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), ValidateRole(now)...)
}

// ValidateClusterRole checks the rules and the selectors of an aggregation.
func ValidateClusterRole(r *rbacv1.ClusterRole) field.ErrorList {
	all := append(rules.ClusterMeta(&r.ObjectMeta, roleName), policyRules(r.Rules, false)...)
	if r.AggregationRule == nil {
		return all
	}
	selectors := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(r.AggregationRule.ClusterRoleSelectors) == 0 {
		all = append(all,
			field.Required(selectors, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	for i := range r.AggregationRule.ClusterRoleSelectors {
		all = append(all, metav1validation.ValidateLabelSelector(&r.AggregationRule.ClusterRoleSelectors[i],
			metav1validation.LabelSelectorValidationOptions{}, selectors.Index(i))...)
	}
	return all
}

// ValidateClusterRoleUpdate checks metadata and rules.
func ValidateClusterRoleUpdate(now, was *rbacv1.ClusterRole) field.ErrorList {
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), ValidateClusterRole(now)...)
}

func policyRules(list []rbacv1.PolicyRule, namespaced bool) (all rules.Errs) {
	for i := range list {
		all = append(all, policyRule(&list[i], namespaced, field.NewPath("rules").Index(i))...)
	}
	return all
}

func policyRule(r *rbacv1.PolicyRule, namespaced bool, path *field.Path) (all rules.Errs) {
	if len(r.Verbs) == 0 {
		all = append(all, field.Required(path.Child("verbs"), "verbs must contain at least one value"))
	}
	if urls := path.Child("nonResourceURLs"); len(r.NonResourceURLs) > 0 {
		if namespaced {
			all = append(all, field.Invalid(urls, r.NonResourceURLs,
				"namespaced rules cannot apply to non-resource URLs"))
		}
		if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
			all = append(all, field.Invalid(urls, r.NonResourceURLs,
				"rules cannot apply to both regular resources and non-resource URLs"))
		}
		return all
	}
	if len(r.APIGroups) == 0 {
		all = append(all, field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	if len(r.Resources) == 0 {
		all = append(all, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
	}
	return all
}

// ValidateRoleBinding checks role and subjects.
func ValidateRoleBinding(b *rbacv1.RoleBinding) field.ErrorList {
	all := append(rules.Meta(&b.ObjectMeta, roleName), roleRef(&b.RoleRef, "Role", "ClusterRole")...)
	return append(all, subjects(b.Subjects, true)...)
}

// ValidateRoleBindingUpdate also keeps the role.
func ValidateRoleBindingUpdate(now, was *rbacv1.RoleBinding) field.ErrorList {
	all := append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), ValidateRoleBinding(now)...)
	return append(all, sameRole(now.RoleRef, was.RoleRef)...)
}

// ValidateClusterRoleBinding checks role and subjects.
func ValidateClusterRoleBinding(b *rbacv1.ClusterRoleBinding) field.ErrorList {
	all := append(rules.ClusterMeta(&b.ObjectMeta, roleName), roleRef(&b.RoleRef, "ClusterRole")...)
	return append(all, subjects(b.Subjects, false)...)
}

// ValidateClusterRoleBindingUpdate also keeps the role.
func ValidateClusterRoleBindingUpdate(now, was *rbacv1.ClusterRoleBinding) field.ErrorList {
	all := append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), ValidateClusterRoleBinding(now)...)
	return append(all, sameRole(now.RoleRef, was.RoleRef)...)
}

// sameRole: who may bind one role might not have been let to bind the other.
func sameRole(now, was rbacv1.RoleRef) rules.Errs {
	if equality.Semantic.DeepEqual(now, was) {
		return nil
	}
	return rules.Errs{field.Invalid(field.NewPath("roleRef"), now, "cannot change roleRef")}
}

func roleRef(ref *rbacv1.RoleRef, kinds ...string) (all rules.Errs) {
	path := field.NewPath("roleRef")
	if ref.APIGroup != rbacv1.GroupName {
		all = append(all, field.NotSupported(path.Child("apiGroup"), ref.APIGroup, []string{rbacv1.GroupName}))
	}
	all = append(all, rules.OneOf(path.Child("kind"), ref.Kind, kinds...)...)
	if ref.Name == "" {
		return append(all, field.Required(path.Child("name"), ""))
	}
	return append(all, rules.Valid(path.Child("name"), ref.Name, roleName(ref.Name, false))...)
}

func subjects(list []rbacv1.Subject, namespaced bool) (all rules.Errs) {
	for i := range list {
		all = append(all, bindingSubject(&list[i], namespaced, field.NewPath("subjects").Index(i))...)
	}
	return all
}

func bindingSubject(s *rbacv1.Subject, namespaced bool, path *field.Path) (all rules.Errs) {
	if s.Name == "" {
		all = append(all, field.Required(path.Child("name"), ""))
	}
	want := rbacv1.GroupName
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		want = ""
		if s.Name != "" {
			all = append(all, rules.Valid(path.Child("name"), s.Name,
				apivalidation.ValidateServiceAccountName(s.Name, false))...)
		}
		if s.Namespace == "" && !namespaced {
			all = append(all, field.Required(path.Child("namespace"), ""))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
	default:
		return append(all, field.NotSupported(path.Child("kind"), s.Kind,
			[]string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	if s.APIGroup != want {
		all = append(all, field.NotSupported(path.Child("apiGroup"), s.APIGroup, []string{want}))
	}
	return all
}
