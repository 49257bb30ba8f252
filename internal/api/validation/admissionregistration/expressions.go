// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	apicel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// maxMatchConditions is how many match conditions a webhook or a policy may have.
const maxMatchConditions = 64

// expressions compiles the CEL expressions of one object, with the library that will evaluate them.
type expressions struct {
	// what the object had before: an expression that an older or newer server accepted stays good
	stored   map[string]bool
	compiler *cel.CompositedCompiler
}

func newExpressions(stored map[string]bool) *expressions { return &expressions{stored: stored} }

// expressionsOf collects the expressions of an object.
func expressionsOf(each func(add func(string))) map[string]bool {
	all := map[string]bool{}
	each(func(text string) { all[text] = true })
	return all
}

func addConditions(add func(string), conditions []admissionv1.MatchCondition) {
	for _, c := range conditions {
		add(c.Expression)
	}
}

// ready makes the compiler when the first expression needs it: an environment of CEL takes megabytes.
func (e *expressions) ready(at *field.Path) rules.Errs {
	if e.compiler != nil {
		return nil
	}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return rules.Errs{field.InternalError(at, fmt.Errorf("environment of CEL: %w", err))}
	}
	e.compiler = compiler
	return nil
}

func (e *expressions) mode(text string) environment.Type {
	if e.stored[text] {
		return environment.StoredExpressions
	}
	return environment.NewExpressions
}

// check compiles an expression that must be there.
func (e *expressions) check(at *field.Path, x cel.ExpressionAccessor,
	declared cel.OptionalVariableDeclarations) rules.Errs {
	if strings.TrimSpace(x.GetExpression()) == "" {
		return rules.Errs{field.Required(at, "")}
	}
	if all := e.ready(at); all != nil {
		return all
	}
	return complaint(at, x, e.compiler.CompileCELExpression(x, declared, e.mode(x.GetExpression())))
}

// define compiles a variable, which expressions after it may use.
func (e *expressions) define(at *field.Path, v cel.NamedExpressionAccessor,
	declared cel.OptionalVariableDeclarations) rules.Errs {
	if strings.TrimSpace(v.GetExpression()) == "" {
		return rules.Errs{field.Required(at, "")}
	}
	if all := e.ready(at); all != nil {
		return all
	}
	return complaint(at, v, e.compiler.CompileAndStoreVariable(v, declared, e.mode(v.GetExpression())))
}

func complaint(at *field.Path, x cel.ExpressionAccessor, result cel.CompilationResult) rules.Errs {
	switch {
	case result.Error == nil:
		return nil
	case result.Error.Type == apicel.ErrorTypeInternal:
		return rules.Errs{field.InternalError(at, result.Error)}
	}
	return rules.Errs{field.Invalid(at, x.GetExpression(), result.Error.Detail)}
}

// matchConditions checks names and expressions; params may be used in those of a policy that has them.
func matchConditions(at *field.Path, list []admissionv1.MatchCondition, compile *expressions,
	params bool) (all rules.Errs) {
	if len(list) > maxMatchConditions {
		all = append(all, field.TooMany(at, len(list), maxMatchConditions))
	}
	names := map[string]bool{}
	for i := range list {
		c, here := &list[i], at.Index(i)
		switch {
		case c.Name == "":
			all = append(all, field.Required(here.Child("name"), ""))
		case names[c.Name]:
			all = append(all, field.Duplicate(here.Child("name"), c.Name))
		default:
			all = append(all, rules.Valid(here.Child("name"), c.Name, validation.IsQualifiedName(c.Name))...)
		}
		names[c.Name] = true
		all = append(all, compile.check(here.Child("expression"), (*matchconditions.MatchCondition)(c),
			cel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true})...)
	}
	return all
}
