// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// ValidateMutatingAdmissionPolicy checks a new policy, and that all of its expressions compile.
func ValidateMutatingAdmissionPolicy(p *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
	return mutatingPolicy(p, nil)
}

// ValidateMutatingAdmissionPolicyUpdate checks a changed policy. Expressions that were there before stay good.
func ValidateMutatingAdmissionPolicyUpdate(now, was *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
	stored := expressionsOf(func(add func(string)) {
		addConditions(add, was.Spec.MatchConditions)
		for _, v := range was.Spec.Variables {
			add(v.Expression)
		}
		for _, m := range was.Spec.Mutations {
			if m.ApplyConfiguration != nil {
				add(m.ApplyConfiguration.Expression)
			}
			if m.JSONPatch != nil {
				add(m.JSONPatch.Expression)
			}
		}
	})
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), mutatingPolicy(now, stored)...)
}

func mutatingPolicy(p *admissionv1.MutatingAdmissionPolicy, stored map[string]bool) rules.Errs {
	all, at := rules.ClusterMeta(&p.ObjectMeta, apivalidation.NameIsDNSSubdomain), field.NewPath("spec")
	spec, compile := &p.Spec, newExpressions(stored)
	all = append(all, policyHead(at, spec.ParamKind, spec.FailurePolicy)...)
	all = append(all, rules.OneOf(at.Child("reinvocationPolicy"), spec.ReinvocationPolicy,
		admissionv1.NeverReinvocationPolicy, admissionv1.IfNeededReinvocationPolicy)...)
	all = append(all, matchResources(at.Child("matchConstraints"), spec.MatchConstraints, true,
		mutatingOperations())...)
	all = append(all, matchConditions(at.Child("matchConditions"), spec.MatchConditions, compile,
		spec.ParamKind != nil)...)
	all = append(all, variables(at.Child("variables"), spec.Variables, compile, spec.ParamKind != nil)...)
	if len(spec.Mutations) == 0 {
		all = append(all, field.Required(at.Child("mutations"), "mutations must be non-empty"))
	}
	for i := range spec.Mutations {
		all = append(all, mutation(at.Child("mutations").Index(i), &spec.Mutations[i], compile,
			spec.ParamKind != nil)...)
	}
	return all
}

// mutation has the member that its patch type names, and no other.
func mutation(at *field.Path, m *admissionv1.Mutation, compile *expressions, params bool) rules.Errs {
	all := rules.OneOf(at.Child("patchType"), m.PatchType, admissionv1.PatchTypeApplyConfiguration,
		admissionv1.PatchTypeJSONPatch)
	declared := cel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true, HasPatchTypes: true}
	apply, json := at.Child("applyConfiguration"), at.Child("jsonPatch")
	switch m.PatchType {
	case admissionv1.PatchTypeApplyConfiguration:
		if m.JSONPatch != nil {
			all = append(all, field.Forbidden(json, "must not be set when patchType is ApplyConfiguration"))
		}
		if m.ApplyConfiguration == nil {
			return append(all, field.Required(apply, "must be set when patchType is ApplyConfiguration"))
		}
		all = append(all, compile.check(apply.Child("expression"),
			&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, declared)...)
	case admissionv1.PatchTypeJSONPatch:
		if m.ApplyConfiguration != nil {
			all = append(all, field.Forbidden(apply, "must not be set when patchType is JSONPatch"))
		}
		if m.JSONPatch == nil {
			return append(all, field.Required(json, "must be set when patchType is JSONPatch"))
		}
		all = append(all, compile.check(json.Child("expression"),
			&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, declared)...)
	}
	return all
}

// ValidateValidatingAdmissionPolicyBinding checks a new binding.
func ValidateValidatingAdmissionPolicyBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	all, at := rules.ClusterMeta(&b.ObjectMeta, apivalidation.NameIsDNSSubdomain), field.NewPath("spec")
	all = append(all, binding(at, b.Spec.PolicyName, b.Spec.ParamRef)...)
	all = append(all, matchResources(at.Child("matchResources"), b.Spec.MatchResources, false, allOperations())...)
	return append(all, validationActions(at.Child("validationActions"), b.Spec.ValidationActions)...)
}

// ValidateValidatingAdmissionPolicyBindingUpdate checks a changed binding.
func ValidateValidatingAdmissionPolicyBindingUpdate(now,
	was *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), ValidateValidatingAdmissionPolicyBinding(now)...)
}

// ValidateMutatingAdmissionPolicyBinding checks a new binding.
func ValidateMutatingAdmissionPolicyBinding(b *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
	all, at := rules.ClusterMeta(&b.ObjectMeta, apivalidation.NameIsDNSSubdomain), field.NewPath("spec")
	all = append(all, binding(at, b.Spec.PolicyName, b.Spec.ParamRef)...)
	return append(all, matchResources(at.Child("matchResources"), b.Spec.MatchResources, false,
		mutatingOperations())...)
}

// ValidateMutatingAdmissionPolicyBindingUpdate checks a changed binding.
func ValidateMutatingAdmissionPolicyBindingUpdate(now,
	was *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), ValidateMutatingAdmissionPolicyBinding(now)...)
}

func binding(at *field.Path, policy string, ref *admissionv1.ParamRef) (all rules.Errs) {
	if policy == "" {
		all = append(all, field.Required(at.Child("policyName"), ""))
	} else {
		all = append(all, rules.Valid(at.Child("policyName"), policy,
			apivalidation.NameIsDNSSubdomain(policy, false))...)
	}
	if ref == nil {
		return all
	}
	at = at.Child("paramRef")
	switch {
	case ref.Name != "" && ref.Selector != nil:
		for _, name := range []string{"name", "selector"} {
			all = append(all, field.Forbidden(at.Child(name), "name and selector are mutually exclusive"))
		}
	case ref.Name == "" && ref.Selector == nil:
		all = append(all, field.Required(at, "one of name or selector must be specified"))
	}
	if ref.Name != "" { // of any kind: roles, for one, are called system:node
		all = append(all, rules.Valid(at.Child("name"), ref.Name, path.ValidatePathSegmentName(ref.Name, false))...)
	}
	all = append(all, selector(at.Child("selector"), ref.Selector)...)
	if ref.Namespace != "" {
		all = append(all, rules.Valid(at.Child("namespace"), ref.Namespace,
			apivalidation.ValidateNamespaceName(ref.Namespace, false))...)
	}
	if ref.ParameterNotFoundAction == nil {
		return append(all, field.Required(at.Child("parameterNotFoundAction"), ""))
	}
	return append(all, rules.OneOf(at.Child("parameterNotFoundAction"), *ref.ParameterNotFoundAction,
		admissionv1.AllowAction, admissionv1.DenyAction)...)
}

func validationActions(at *field.Path, list []admissionv1.ValidationAction) (all rules.Errs) {
	if len(list) == 0 {
		return rules.Errs{field.Required(at, "at least one validation action is required")}
	}
	for i, action := range list {
		all = append(all, rules.OneOf(at.Index(i), action, admissionv1.Deny, admissionv1.Warn, admissionv1.Audit)...)
		if slices.Contains(list[:i], action) {
			all = append(all, field.Duplicate(at.Index(i), action))
		}
	}
	if slices.Contains(list, admissionv1.Deny) && slices.Contains(list, admissionv1.Warn) {
		all = append(all,
			field.Invalid(at, list,
				"must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return all
}
