// SPDX-License-Identifier: Apache-2.0

package api

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/validation"
)

// admissionKinds are the rules of admission that are objects: webhooks and policies (EC-21).
func admissionKinds() []*kind {
	gv, policies := admissionv1.SchemeGroupVersion, []string{"api-extensions"}
	return []*kind{
		{gv: gv, name: "MutatingWebhookConfiguration", plural: "mutatingwebhookconfigurations", singular: "mutatingwebhookconfiguration",
			categories: policies, object: of[admissionv1.MutatingWebhookConfiguration], list: of[admissionv1.MutatingWebhookConfigurationList],
			rules: generationRules(validation.ValidateMutatingWebhookConfiguration, validation.ValidateMutatingWebhookConfigurationUpdate,
				func(c *admissionv1.MutatingWebhookConfiguration) (*metav1.ObjectMeta, any) {
					return &c.ObjectMeta, c.Webhooks
				})},
		{gv: gv, name: "ValidatingWebhookConfiguration", plural: "validatingwebhookconfigurations", singular: "validatingwebhookconfiguration",
			categories: policies, object: of[admissionv1.ValidatingWebhookConfiguration], list: of[admissionv1.ValidatingWebhookConfigurationList],
			rules: generationRules(validation.ValidateValidatingWebhookConfiguration, validation.ValidateValidatingWebhookConfigurationUpdate,
				func(c *admissionv1.ValidatingWebhookConfiguration) (*metav1.ObjectMeta, any) {
					return &c.ObjectMeta, c.Webhooks
				})},
		{gv: gv, name: "ValidatingAdmissionPolicy", plural: validatingPolicies, singular: "validatingadmissionpolicy",
			categories: policies, object: of[admissionv1.ValidatingAdmissionPolicy], list: of[admissionv1.ValidatingAdmissionPolicyList],
			rules: validatingPolicyRules(), status: status(validatingPolicyStatusRules())},
		{gv: gv, name: "ValidatingAdmissionPolicyBinding", plural: "validatingadmissionpolicybindings", singular: "validatingadmissionpolicybinding",
			categories: policies, object: of[admissionv1.ValidatingAdmissionPolicyBinding], list: of[admissionv1.ValidatingAdmissionPolicyBindingList],
			rules: generationRules(validation.ValidateValidatingAdmissionPolicyBinding, validation.ValidateValidatingAdmissionPolicyBindingUpdate,
				func(b *admissionv1.ValidatingAdmissionPolicyBinding) (*metav1.ObjectMeta, any) {
					return &b.ObjectMeta, b.Spec
				})},
		{gv: gv, name: "MutatingAdmissionPolicy", plural: "mutatingadmissionpolicies", singular: "mutatingadmissionpolicy",
			categories: policies, object: of[admissionv1.MutatingAdmissionPolicy], list: of[admissionv1.MutatingAdmissionPolicyList],
			rules: generationRules(validation.ValidateMutatingAdmissionPolicy, validation.ValidateMutatingAdmissionPolicyUpdate,
				func(p *admissionv1.MutatingAdmissionPolicy) (*metav1.ObjectMeta, any) { return &p.ObjectMeta, p.Spec })},
		{gv: gv, name: "MutatingAdmissionPolicyBinding", plural: "mutatingadmissionpolicybindings", singular: "mutatingadmissionpolicybinding",
			categories: policies, object: of[admissionv1.MutatingAdmissionPolicyBinding], list: of[admissionv1.MutatingAdmissionPolicyBindingList],
			rules: generationRules(validation.ValidateMutatingAdmissionPolicyBinding, validation.ValidateMutatingAdmissionPolicyBindingUpdate,
				func(b *admissionv1.MutatingAdmissionPolicyBinding) (*metav1.ObjectMeta, any) {
					return &b.ObjectMeta, b.Spec
				})},
	}
}

const validatingPolicies = "validatingadmissionpolicies"

// generationRules are those of a kind that counts the changes of what it asks for.
func generationRules[T runtime.Object](validate func(T) field.ErrorList, validateUpdate func(now, was T) field.ErrorList,
	parts func(T) (*metav1.ObjectMeta, any)) rules {
	return typed[T]{
		prepareCreate: func(obj T) {
			meta, _ := parts(obj)
			meta.Generation = 1
		},
		validate: validate,
		prepareUpdate: func(obj, old T) {
			meta, now := parts(obj)
			_, was := parts(old)
			if !equality.Semantic.DeepEqual(now, was) {
				meta.Generation++
			}
		},
		validateUpdate: validateUpdate,
	}.rules()
}

func validatingPolicyRules() rules {
	return typed[*admissionv1.ValidatingAdmissionPolicy]{
		prepareCreate: func(p *admissionv1.ValidatingAdmissionPolicy) {
			p.Generation, p.Status = 1, admissionv1.ValidatingAdmissionPolicyStatus{}
		},
		validate: validation.ValidateValidatingAdmissionPolicy,
		prepareUpdate: func(p, old *admissionv1.ValidatingAdmissionPolicy) {
			p.Status = old.Status
			if !equality.Semantic.DeepEqual(p.Spec, old.Spec) {
				p.Generation++
			}
		},
		validateUpdate: validation.ValidateValidatingAdmissionPolicyUpdate,
		reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.rules()
}

func validatingPolicyStatusRules() rules {
	return typed[*admissionv1.ValidatingAdmissionPolicy]{
		prepareUpdate:  func(p, old *admissionv1.ValidatingAdmissionPolicy) { p.Spec = old.Spec },
		validateUpdate: validation.ValidateValidatingAdmissionPolicyStatusUpdate,
		reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.rules()
}
