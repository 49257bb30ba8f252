// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"regexp"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

const (
	maxAuditAnnotations = 20
	maxAuditExpression  = 5 * 1024
)

// ValidateValidatingAdmissionPolicy checks a new policy, and that all of its expressions compile.
func ValidateValidatingAdmissionPolicy(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	return validatingPolicy(p, nil)
}

// ValidateValidatingAdmissionPolicyUpdate checks a changed policy. Expressions that were there before stay good.
func ValidateValidatingAdmissionPolicyUpdate(now, was *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	stored := expressionsOf(func(add func(string)) {
		addConditions(add, was.Spec.MatchConditions)
		for _, v := range was.Spec.Variables {
			add(v.Expression)
		}
		for _, v := range was.Spec.Validations {
			add(v.Expression)
			add(v.MessageExpression)
		}
		for _, a := range was.Spec.AuditAnnotations {
			add(a.ValueExpression)
		}
	})
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), validatingPolicy(now, stored)...)
}

// ValidateValidatingAdmissionPolicyStatusUpdate checks what the type checker wrote.
func ValidateValidatingAdmissionPolicyStatusUpdate(now, was *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	all, at := rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), field.NewPath("status")
	if t := now.Status.TypeChecking; t != nil {
		for i, w := range t.ExpressionWarnings {
			here := at.Child("typeChecking", "expressionWarnings").Index(i)
			if w.FieldRef == "" {
				all = append(all, field.Required(here.Child("fieldRef"), ""))
			}
			if w.Warning == "" {
				all = append(all, field.Required(here.Child("warning"), ""))
			}
		}
	}
	return append(all, metavalidation.ValidateConditions(now.Status.Conditions, at.Child("conditions"))...)
}

func validatingPolicy(p *admissionv1.ValidatingAdmissionPolicy, stored map[string]bool) rules.Errs {
	all, at := rules.ClusterMeta(&p.ObjectMeta, apivalidation.NameIsDNSSubdomain), field.NewPath("spec")
	spec, compile := &p.Spec, newExpressions(stored)
	all = append(all, policyHead(at, spec.ParamKind, spec.FailurePolicy)...)
	all = append(all, matchResources(at.Child("matchConstraints"), spec.MatchConstraints, true, allOperations())...)
	all = append(all, matchConditions(at.Child("matchConditions"), spec.MatchConditions, compile,
		spec.ParamKind != nil)...)
	all = append(all, variables(at.Child("variables"), spec.Variables, compile, spec.ParamKind != nil)...)
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		for _, name := range []string{"validations", "auditAnnotations"} {
			all = append(all, field.Required(at.Child(name), "validations or auditAnnotations must be non-empty"))
		}
	}
	for i := range spec.Validations {
		all = append(all, validationRule(at.Child("validations").Index(i), &spec.Validations[i], compile,
			spec.ParamKind != nil)...)
	}
	return append(all, auditAnnotations(at.Child("auditAnnotations"), p, compile)...)
}

func policyHead(at *field.Path, kind *admissionv1.ParamKind, failure *admissionv1.FailurePolicyType) rules.Errs {
	all := rules.OneOfIfSet(at.Child("failurePolicy"), failure, admissionv1.Ignore, admissionv1.Fail)
	if kind == nil {
		return all
	}
	at = at.Child("paramKind")
	switch gv, err := schema.ParseGroupVersion(kind.APIVersion); {
	case kind.APIVersion == "":
		all = append(all, field.Required(at.Child("apiVersion"), ""))
	case err != nil:
		all = append(all, field.Invalid(at.Child("apiVersion"), kind.APIVersion, err.Error()))
	default:
		if gv.Group != "" {
			all = append(all, rules.Valid(at.Child("apiVersion"), kind.APIVersion,
				validation.IsDNS1123Subdomain(gv.Group))...)
		}
		all = append(all, rules.Valid(at.Child("apiVersion"), kind.APIVersion,
			validation.IsDNS1035Label(gv.Version))...)
	}
	if kind.Kind == "" {
		return append(all, field.Required(at.Child("kind"), ""))
	}
	return append(all, rules.Valid(at.Child("kind"), kind.Kind,
		validation.IsDNS1035Label(strings.ToLower(kind.Kind)))...)
}

// variables are compiled in their order: each may use those before it.
func variables(at *field.Path, list []admissionv1.Variable, compile *expressions, params bool) (all rules.Errs) {
	names := map[string]bool{}
	for i, v := range list {
		here := at.Index(i)
		switch {
		case v.Name == "":
			all = append(all, field.Required(here.Child("name"), ""))
		case !isIdentifier(v.Name):
			all = append(all, field.Invalid(here.Child("name"), v.Name, "name is not a valid CEL identifier"))
		case names[v.Name]:
			all = append(all, field.Duplicate(here.Child("name"), v.Name))
		}
		names[v.Name] = true
		all = append(all, compile.define(here.Child("expression"),
			&validating.Variable{Name: v.Name, Expression: v.Expression},
			cel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true})...)
	}
	return all
}

// isIdentifier reports whether CEL can name something so:
// https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax.
func isIdentifier(name string) bool {
	switch name {
	case "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
		"let", "loop",
		"package", "namespace", "return", "var", "void", "while":
		return false
	}
	return regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`).MatchString(name)
}

func validationRule(at *field.Path, v *admissionv1.Validation, compile *expressions, params bool) rules.Errs {
	all := compile.check(at.Child("expression"), &validating.ValidationCondition{Expression: v.Expression},
		cel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true})
	message := at.Child("message")
	switch {
	case v.Message != "" && strings.TrimSpace(v.Message) == "":
		all = append(all, field.Invalid(message, v.Message, "message must be non-empty if specified"))
	case hasLineBreak(strings.TrimSpace(v.Message)):
		all = append(all, field.Invalid(message, v.Message, "message must not contain line breaks"))
	case v.Message == "" && hasLineBreak(strings.TrimSpace(v.Expression)):
		all = append(all, field.Required(message, "message must be specified if expression contains line breaks"))
	}
	if v.MessageExpression != "" {
		all = append(all, compile.check(at.Child("messageExpression"),
			&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression},
			cel.OptionalVariableDeclarations{HasParams: params})...)
	}
	return append(all, rules.OneOfIfSet(at.Child("reason"), v.Reason, metav1.StatusReasonUnauthorized,
		metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)...)
}

func hasLineBreak(s string) bool { return strings.ContainsAny(s, "\r\n") }

func auditAnnotations(at *field.Path, p *admissionv1.ValidatingAdmissionPolicy, compile *expressions) (all rules.Errs) {
	if n := len(p.Spec.AuditAnnotations); n > maxAuditAnnotations {
		all = append(all, field.TooMany(at, n, maxAuditAnnotations))
	}
	keys := map[string]bool{}
	for i, a := range p.Spec.AuditAnnotations {
		here := at.Index(i)
		switch {
		case a.Key == "":
			all = append(all, field.Required(here.Child("key"), ""))
		case keys[a.Key]:
			all = append(all, field.Duplicate(here.Child("key"), a.Key))
		case strings.Contains(a.Key, "/"):
			all = append(all, field.Invalid(here.Child("key"), a.Key,
				"must not contain a '/': the policy's name is put before it"))
		default:
			all = append(all, rules.Valid(here.Child("key"), a.Key, validation.IsQualifiedName(a.Key))...)
		}
		keys[a.Key] = true
		if n := len(a.ValueExpression); n > maxAuditExpression {
			all = append(all, field.TooLong(here.Child("valueExpression"), "", maxAuditExpression))
			continue
		}
		all = append(all, compile.check(here.Child("valueExpression"),
			&validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression},
			cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true})...)
	}
	return all
}
