// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateResourceQuota checks names, amounts and scopes.
func ValidateResourceQuota(q *corev1.ResourceQuota) field.ErrorList {
	all := meta(&q.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	all = append(all, quotaAmounts(q.Spec.Hard, field.NewPath("spec", "hard"))...)
	all = append(all, quotaScopes(&q.Spec, field.NewPath("spec"))...)
	return append(all, quotaStatus(&q.Status)...)
}

// ValidateResourceQuotaUpdate also keeps the scopes: what they selected is counted already.
func ValidateResourceQuotaUpdate(now, was *corev1.ResourceQuota) field.ErrorList {
	all := metaUpdate(&now.ObjectMeta, &was.ObjectMeta)
	if !sets.New(now.Spec.Scopes...).Equal(sets.New(was.Spec.Scopes...)) {
		all = append(all, field.Invalid(field.NewPath("spec", "scopes"), now.Spec.Scopes, apivalidation.FieldImmutableErrorMsg))
	}
	if !equality.Semantic.DeepEqual(now.Spec.ScopeSelector, was.Spec.ScopeSelector) {
		all = append(all, field.Invalid(field.NewPath("spec", "scopeSelector"), now.Spec.ScopeSelector, apivalidation.FieldImmutableErrorMsg))
	}
	return append(all, ValidateResourceQuota(now)...)
}

// ValidateResourceQuotaStatusUpdate checks what a controller counted.
func ValidateResourceQuotaStatusUpdate(now, was *corev1.ResourceQuota) field.ErrorList {
	return append(metaUpdate(&now.ObjectMeta, &was.ObjectMeta), quotaStatus(&now.Status)...)
}

func quotaStatus(s *corev1.ResourceQuotaStatus) errs {
	all := quotaAmounts(s.Hard, field.NewPath("status", "hard"))
	return append(all, quotaAmounts(s.Used, field.NewPath("status", "used"))...)
}

func quotaAmounts(list corev1.ResourceList, path *field.Path) (all errs) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at, q := path.Key(string(name)), list[name]
		all = append(all, quotaName(at, string(name))...)
		if q.Sign() < 0 {
			all = append(all, field.Invalid(at, q.String(), "must be greater than or equal to 0"))
		}
		if isCounted(name) && !isWhole(q) {
			all = append(all, field.Invalid(at, q.String(), "must be an integer"))
		}
	}
	return all
}

func isWhole(q resource.Quantity) bool {
	rounded := q.DeepCopy()
	return rounded.RoundUp(0)
}

// isCounted: objects are counted in whole ones.
func isCounted(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourcePods, corev1.ResourceServices, corev1.ResourceReplicationControllers, corev1.ResourceQuotas, corev1.ResourceSecrets,
		corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers:
		return true
	}
	return strings.HasPrefix(string(name), "count/")
}

// quotaName: qualified; without a domain it must be one that Kubernetes counts.
func quotaName(path *field.Path, name string) errs {
	all := valid(path, name, validation.IsQualifiedName(name))
	if len(all) > 0 || strings.Contains(name, "/") || isCounted(corev1.ResourceName(name)) {
		return all
	}
	for _, prefix := range []string{"requests.", "limits."} {
		name = strings.TrimPrefix(name, prefix)
	}
	switch name {
	case "cpu", "memory", "ephemeral-storage", "storage":
		return nil
	}
	if strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
		return nil
	}
	return errs{field.Invalid(path, name, "must be a standard resource for quota")}
}

func quotaScopes(s *corev1.ResourceQuotaSpec, path *field.Path) (all errs) {
	known := []corev1.ResourceQuotaScope{
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
		corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
		corev1.ResourceQuotaScopeVolumeAttributesClass,
	}
	chosen := sets.New[corev1.ResourceQuotaScope]()
	for _, scope := range s.Scopes {
		if !slices.Contains(known, scope) {
			all = append(all, field.Invalid(path.Child("scopes"), s.Scopes, "unsupported scope"))
		}
		chosen.Insert(scope)
	}
	for _, pair := range [][]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if chosen.HasAll(pair...) {
			all = append(all, field.Invalid(path.Child("scopes"), s.Scopes, "conflicting scopes"))
		}
	}
	if s.ScopeSelector == nil {
		return append(all, scopedNames(s, chosen, path)...)
	}
	for i, e := range s.ScopeSelector.MatchExpressions {
		at := path.Child("scopeSelector", "matchExpressions").Index(i)
		if !slices.Contains(known, e.ScopeName) {
			all = append(all, field.Invalid(at.Child("scopeName"), e.ScopeName, "unsupported scope"))
		}
		all = append(all, scopeOperator(&e, at)...)
		chosen.Insert(e.ScopeName)
	}
	return append(all, scopedNames(s, chosen, path)...)
}

// scopedNames: a scope is about pods, so that of what Kubernetes counts only what pods take can be limited in it; of best-effort
// ones only their number.
func scopedNames(s *corev1.ResourceQuotaSpec, chosen sets.Set[corev1.ResourceQuotaScope], path *field.Path) (all errs) {
	if len(chosen) == 0 || chosen.Has(corev1.ResourceQuotaScopeVolumeAttributesClass) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Hard)) {
		if strings.Contains(string(name), "/") || name == corev1.ResourcePods {
			continue
		}
		if bare := strings.TrimPrefix(strings.TrimPrefix(string(name), "requests."), "limits."); bare == "storage" || isCounted(name) ||
			chosen.Has(corev1.ResourceQuotaScopeBestEffort) {
			all = append(all, field.Invalid(path.Child("scopes"), sets.List(chosen), "unsupported scope applied to resource "+string(name)))
		}
	}
	return all
}

func scopeOperator(e *corev1.ScopedResourceSelectorRequirement, path *field.Path) (all errs) {
	switch e.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		if len(e.Values) == 0 {
			all = append(all, field.Required(path.Child("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(e.Values) > 0 {
			all = append(all, field.Invalid(path.Child("values"), e.Values, "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector"))
		}
	default:
		all = append(all, field.Invalid(path.Child("operator"), e.Operator, "not a valid selector operator"))
	}
	switch e.ScopeName {
	case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
		corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		if e.Operator != corev1.ScopeSelectorOpExists {
			all = append(all, field.Invalid(path.Child("operator"), e.Operator, "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
		}
	}
	return all
}
