// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// admissionRule checks which requests a webhook or policy is about.
func admissionRule(at *field.Path, r *admissionv1.RuleWithOperations,
	operations []admissionv1.OperationType) rules.Errs {
	all := admissionOperations(at.Child("operations"), r.Operations, operations)
	all = append(all, wildcardList(at.Child("apiGroups"), r.APIGroups, true)...)
	all = append(all, wildcardList(at.Child("apiVersions"), r.APIVersions, false)...)
	all = append(all, ruleResources(at.Child("resources"), r.Resources)...)
	return append(all, rules.OneOfIfSet(at.Child("scope"), r.Scope, admissionv1.AllScopes, admissionv1.ClusterScope,
		admissionv1.NamespacedScope)...)
}

func allOperations() []admissionv1.OperationType {
	return []admissionv1.OperationType{admissionv1.OperationAll, admissionv1.Create, admissionv1.Update,
		admissionv1.Delete, admissionv1.Connect}
}

// mutatingOperations leave out deletions: there is no object that could be changed.
func mutatingOperations() []admissionv1.OperationType {
	return []admissionv1.OperationType{admissionv1.OperationAll, admissionv1.Create, admissionv1.Update,
		admissionv1.Connect}
}

func admissionOperations(at *field.Path, list, known []admissionv1.OperationType) (all rules.Errs) {
	if len(list) == 0 {
		return rules.Errs{field.Required(at, "")}
	}
	if len(list) > 1 && slices.Contains(list, admissionv1.OperationAll) {
		all = append(all, field.Invalid(at, list, "if '*' is present, must not specify other operations"))
	}
	for i, op := range list {
		all = append(all, rules.OneOf(at.Index(i), op, known...)...)
	}
	return all
}

// wildcardList is a list of names, or the one name "*". The empty name is that of the core group.
func wildcardList(at *field.Path, list []string, emptyAllowed bool) (all rules.Errs) {
	if len(list) == 0 {
		return rules.Errs{field.Required(at, "")}
	}
	if len(list) > 1 && slices.Contains(list, "*") {
		all = append(all, field.Invalid(at, list, "if '*' is present, must not specify other values"))
	}
	for i, name := range list {
		if name == "" && !emptyAllowed {
			all = append(all, field.Required(at.Index(i), ""))
		}
	}
	return all
}

// ruleResources are "pods", "pods/exec", "pods/*", "*/exec", "*" (everything but subresources) and "*/*"; none may be
// part of another.
func ruleResources(at *field.Path, list []string) (all rules.Errs) {
	if len(list) == 0 {
		return rules.Errs{field.Required(at, "")}
	}
	for i, name := range list {
		resource, sub, _ := strings.Cut(name, "/")
		switch {
		case name == "":
			all = append(all, field.Required(at.Index(i), ""))
		case resource == "":
			all = append(all, field.Invalid(at.Index(i), name, "must name a resource or '*' before the '/'"))
		case strings.Contains(sub, "/"):
			all = append(all, field.Invalid(at.Index(i), name, "must have at most one '/'"))
		}
		for j, other := range list {
			if i != j && name != "" && resourceCovers(other, name) && (i > j || !resourceCovers(name, other)) {
				all = append(all, field.Invalid(at.Index(i), name,
					fmt.Sprintf("if '%s' is present, must not specify %s", other, name)))
				break
			}
		}
	}
	return all
}

// resourceCovers reports whether a request for what b names is one for what a names too. Only wildcards cover.
func resourceCovers(a, b string) bool {
	if !strings.Contains(a, "*") {
		return false
	}
	resourceA, subA, deepA := strings.Cut(a, "/")
	resourceB, subB, deepB := strings.Cut(b, "/")
	if resourceA != "*" && resourceA != resourceB {
		return false
	}
	switch {
	case a == "*/*":
		return true
	case deepA != deepB:
		return false
	}
	return !deepA || subA == "*" || subA == subB
}

// matchResources checks what a policy or binding matches. A policy must say something; a binding need not.
func matchResources(at *field.Path, m *admissionv1.MatchResources, required bool,
	operations []admissionv1.OperationType) rules.Errs {
	if m == nil {
		if required {
			return rules.Errs{field.Required(at, "")}
		}
		return nil
	}
	all := selector(at.Child("namespaceSelector"), m.NamespaceSelector)
	all = append(all, selector(at.Child("objectSelector"), m.ObjectSelector)...)
	all = append(all, rules.OneOfIfSet(at.Child("matchPolicy"), m.MatchPolicy, admissionv1.Exact,
		admissionv1.Equivalent)...)
	if required && len(m.ResourceRules) == 0 {
		all = append(all, field.Required(at.Child("resourceRules"), ""))
	}
	for i := range m.ResourceRules {
		all = append(all, namedRule(at.Child("resourceRules").Index(i), &m.ResourceRules[i], operations)...)
	}
	for i := range m.ExcludeResourceRules {
		all = append(all, namedRule(at.Child("excludeResourceRules").Index(i), &m.ExcludeResourceRules[i],
			operations)...)
	}
	return all
}

func namedRule(at *field.Path, r *admissionv1.NamedRuleWithOperations,
	operations []admissionv1.OperationType) rules.Errs {
	all := admissionRule(at, &r.RuleWithOperations, operations)
	for i, name := range r.ResourceNames {
		here := at.Child("resourceNames").Index(i)
		all = append(all, rules.Valid(here, name, path.ValidatePathSegmentName(name, false))...)
		if slices.Contains(r.ResourceNames[:i], name) {
			all = append(all, field.Duplicate(here, name))
		}
	}
	return all
}

// selector checks a selector that may be absent.
func selector(at *field.Path, s *metav1.LabelSelector) rules.Errs {
	if s == nil {
		return nil
	}
	return metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, at)
}
