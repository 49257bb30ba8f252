// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
	"github.com/wherryproject/wherry/internal/podspec"
)

// ValidateResourceQuota checks names, amounts and scopes.
func ValidateResourceQuota(q *corev1.ResourceQuota) field.ErrorList {
	all := rules.Meta(&q.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	all = append(all, quotaAmounts(q.Spec.Hard, field.NewPath("spec", "hard"))...)
	return append(all, quotaScopes(&q.Spec, field.NewPath("spec"))...)
}

// ValidateResourceQuotaUpdate also keeps the scopes. What a selector selects may change, as in Kubernetes: it is
// counted anew.
func ValidateResourceQuotaUpdate(now, was *corev1.ResourceQuota) field.ErrorList {
	all := rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta)
	if !sets.New(now.Spec.Scopes...).Equal(sets.New(was.Spec.Scopes...)) {
		all = append(all, field.Invalid(field.NewPath("spec", "scopes"), now.Spec.Scopes,
			apivalidation.FieldImmutableErrorMsg))
	}
	return append(all, ValidateResourceQuota(now)...)
}

// ValidateResourceQuotaStatusUpdate checks what a controller counted.
func ValidateResourceQuotaStatusUpdate(now, was *corev1.ResourceQuota) field.ErrorList {
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), quotaStatus(&now.Status)...)
}

func quotaStatus(s *corev1.ResourceQuotaStatus) rules.Errs {
	all := quotaAmounts(s.Hard, field.NewPath("status", "hard"))
	return append(all, quotaAmounts(s.Used, field.NewPath("status", "used"))...)
}

func quotaAmounts(list corev1.ResourceList, path *field.Path) (all rules.Errs) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at, q := path.Key(string(name)), list[name]
		all = append(all, quotaName(at, string(name))...)
		if q.Sign() < 0 {
			all = append(all, field.Invalid(at, q.String(), "must be greater than or equal to 0"))
		}
		if (isCounted(name) || podspec.IsExtended(name)) && !isWhole(q) {
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
	case corev1.ResourcePods, corev1.ResourceServices, corev1.ResourceReplicationControllers, corev1.ResourceQuotas,
		corev1.ResourceSecrets,
		corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts,
		corev1.ResourceServicesLoadBalancers:
		return true
	}
	return strings.HasPrefix(string(name), "count/")
}

// quotaName: qualified; without a domain it must be one that Kubernetes counts.
func quotaName(path *field.Path, name string) rules.Errs {
	all := rules.Valid(path, name, validation.IsQualifiedName(name))
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
	return rules.Errs{field.Invalid(path, name, "must be a standard resource for quota")}
}

func quotaScopes(s *corev1.ResourceQuotaSpec, path *field.Path) (all rules.Errs) {
	known := []corev1.ResourceQuotaScope{
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating,
		corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
		corev1.ResourceQuotaScopeVolumeAttributesClass,
	}
	at := path.Child("scopes")
	for _, scope := range s.Scopes {
		if !slices.Contains(known, scope) {
			all = append(all, field.Invalid(at, s.Scopes, "unsupported scope"))
		}
	}
	all = append(all, scopesTogether(s.Scopes, s.Hard, at)...)
	if s.ScopeSelector == nil {
		return all
	}
	at = path.Child("scopeSelector", "matchExpressions") // Kubernetes does not say which of them
	var selected []corev1.ResourceQuotaScope
	for _, e := range s.ScopeSelector.MatchExpressions {
		if !slices.Contains(known, e.ScopeName) {
			all = append(all, field.Invalid(at.Child("scopeName"), e.ScopeName, "unsupported scope"))
		}
		all = append(all, scopeOperator(&e, at)...)
		selected = append(selected, e.ScopeName)
	}
	return append(all, scopesTogether(selected, s.Hard, at)...)
}

// scopesTogether: no two may exclude one another, and each must be about something of which the amounts are limited.
func scopesTogether(scopes []corev1.ResourceQuotaScope, hard corev1.ResourceList, path *field.Path) (all rules.Errs) {
	for _, pair := range [][]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]) {
			all = append(all, field.Invalid(path, scopes, "conflicting scopes"))
		}
	}
	for _, scope := range scopes {
		for _, name := range slices.Sorted(maps.Keys(hard)) {
			if isStandard(string(name)) && !inScope(scope, name) {
				all = append(all, field.Invalid(path, scopes,
					fmt.Sprintf("unsupported scope applied to resource %s", name)))
			}
		}
	}
	return all
}

// inScope: most scopes are about pods, and what pods take; best-effort ones take nothing; one is about claims.
func inScope(scope corev1.ResourceQuotaScope, name corev1.ResourceName) bool {
	switch scope {
	case corev1.ResourceQuotaScopeVolumeAttributesClass:
		return name == corev1.ResourcePersistentVolumeClaims || name == corev1.ResourceRequestsStorage
	case corev1.ResourceQuotaScopeBestEffort:
		return name == corev1.ResourcePods
	case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating,
		corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		bare := strings.TrimPrefix(strings.TrimPrefix(string(name), "requests."), "limits.")
		return name == corev1.ResourcePods || bare == "cpu" || bare == "memory"
	}
	return true // has its own error
}

// isStandard: cpu, memory and the like, also as requests and limits, and the kinds that were counted before any could
// be.
func isStandard(name string) bool {
	if strings.HasPrefix(name, "count/") {
		return false
	}
	bare := strings.TrimPrefix(strings.TrimPrefix(name, "requests."), "limits.")
	if strings.HasPrefix(strings.TrimPrefix(name, "requests."), corev1.ResourceHugePagesPrefix) {
		return true
	}
	return bare == "cpu" || bare == "memory" || bare == "ephemeral-storage" || name == "requests.storage" ||
		isCounted(corev1.ResourceName(name))
}

func scopeOperator(e *corev1.ScopedResourceSelectorRequirement, path *field.Path) (all rules.Errs) {
	switch e.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		if len(e.Values) == 0 {
			all = append(all, field.Required(path.Child("values"),
				"must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(e.Values) > 0 {
			all = append(all, field.Invalid(path.Child("values"), e.Values,
				"must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector"))
		}
	default:
		all = append(all, field.Invalid(path.Child("operator"), e.Operator, "not a valid selector operator"))
	}
	switch e.ScopeName {
	case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating,
		corev1.ResourceQuotaScopeBestEffort,
		corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		if e.Operator != corev1.ScopeSelectorOpExists {
			all = append(all, field.Invalid(path.Child("operator"), e.Operator,
				"must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
		}
	}
	return all
}
