// SPDX-License-Identifier: Apache-2.0

package table

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// admissionPrinter prints the kinds that say what is admitted, and whether kind is one of them.
func admissionPrinter(kind string) (Printer, bool) {
	switch kind {
	case "ValidatingWebhookConfiguration":
		return webhooksPrinter(func(c *admissionv1.ValidatingWebhookConfiguration, now time.Time) []any {
			return []any{c.Name, int64(len(c.Webhooks)), age(c.CreationTimestamp, now)}
		}), true
	case "MutatingWebhookConfiguration":
		return webhooksPrinter(func(c *admissionv1.MutatingWebhookConfiguration, now time.Time) []any {
			return []any{c.Name, int64(len(c.Webhooks)), age(c.CreationTimestamp, now)}
		}), true
	case "ValidatingAdmissionPolicy":
		return Printer{
			Columns: columns(nameColumn(), number("Validations", "How many validation rules the policy has"),
				text("ParamKind", "The kind of the policy's parameters"), ageColumn()),
			Row: rowOf(func(p *admissionv1.ValidatingAdmissionPolicy, now time.Time) []any {
				return []any{p.Name, int64(len(p.Spec.Validations)), paramKind(p.Spec.ParamKind),
					age(p.CreationTimestamp, now)}
			}),
		}, true
	case "MutatingAdmissionPolicy":
		return Printer{
			Columns: columns(nameColumn(), number("Mutations", "How many mutations the policy has"),
				text("ParamKind", "The kind of the policy's parameters"), ageColumn()),
			Row: rowOf(func(p *admissionv1.MutatingAdmissionPolicy, now time.Time) []any {
				return []any{p.Name, int64(len(p.Spec.Mutations)), paramKind(p.Spec.ParamKind),
					age(p.CreationTimestamp, now)}
			}),
		}, true
	case "ValidatingAdmissionPolicyBinding":
		return bindingPrinter(func(b *admissionv1.ValidatingAdmissionPolicyBinding, now time.Time) []any {
			return []any{b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), age(b.CreationTimestamp, now)}
		}), true
	case "MutatingAdmissionPolicyBinding":
		return bindingPrinter(func(b *admissionv1.MutatingAdmissionPolicyBinding, now time.Time) []any {
			return []any{b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), age(b.CreationTimestamp, now)}
		}), true
	}
	return Printer{}, false
}

func webhooksPrinter[T runtime.Object](cells func(T, time.Time) []any) Printer {
	return Printer{
		Columns: columns(nameColumn(), number("Webhooks", "How many webhooks the configuration has"), ageColumn()),
		Row:     rowOf(cells),
	}
}

func bindingPrinter[T runtime.Object](cells func(T, time.Time) []any) Printer {
	return Printer{
		Columns: columns(nameColumn(), text("PolicyName", "The policy that is bound"),
			text("ParamRef", "Which parameters it is bound with"), ageColumn()),
		Row: rowOf(cells),
	}
}

func paramKind(k *admissionv1.ParamKind) string {
	if k == nil {
		return unset
	}
	return k.APIVersion + "/" + k.Kind
}

func paramRef(r *admissionv1.ParamRef) string {
	switch {
	case r == nil:
		return unset
	case r.Selector != nil:
		return metav1.FormatLabelSelector(r.Selector)
	case r.Namespace == "":
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

func number(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "integer", Description: description}
}
