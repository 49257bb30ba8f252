// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/validation/admissionregistration"
)

// admissionKinds are the rules of admission that are objects: webhooks and policies (EC-21).
func admissionKinds() []*registry.Kind {
	gv, policies := admissionv1.SchemeGroupVersion, []string{"api-extensions"}
	return []*registry.Kind{
		{GV: gv, Name: "MutatingWebhookConfiguration", Plural: "mutatingwebhookconfigurations",
			Singular: "mutatingwebhookconfiguration", Categories: policies,
			Object: registry.New[admissionv1.MutatingWebhookConfiguration],
			List:   registry.New[admissionv1.MutatingWebhookConfigurationList],
			Rules: generationRules(admissionregistration.ValidateMutatingWebhookConfiguration,
				admissionregistration.ValidateMutatingWebhookConfigurationUpdate,
				func(c *admissionv1.MutatingWebhookConfiguration) (*metav1.ObjectMeta, any) {
					return &c.ObjectMeta, c.Webhooks
				})},
		{GV: gv, Name: "ValidatingWebhookConfiguration", Plural: "validatingwebhookconfigurations",
			Singular: "validatingwebhookconfiguration", Categories: policies,
			Object: registry.New[admissionv1.ValidatingWebhookConfiguration],
			List:   registry.New[admissionv1.ValidatingWebhookConfigurationList],
			Rules: generationRules(admissionregistration.ValidateValidatingWebhookConfiguration,
				admissionregistration.ValidateValidatingWebhookConfigurationUpdate,
				func(c *admissionv1.ValidatingWebhookConfiguration) (*metav1.ObjectMeta, any) {
					return &c.ObjectMeta, c.Webhooks
				})},
		{GV: gv, Name: "ValidatingAdmissionPolicy", Plural: ValidatingPolicies, Singular: "validatingadmissionpolicy",
			Categories: policies, Object: registry.New[admissionv1.ValidatingAdmissionPolicy],
			List: registry.New[admissionv1.ValidatingAdmissionPolicyList], Rules: validatingPolicyRules(),
			Status: status(validatingPolicyStatusRules())},
		{GV: gv, Name: "ValidatingAdmissionPolicyBinding", Plural: "validatingadmissionpolicybindings",
			Singular: "validatingadmissionpolicybinding", Categories: policies,
			Object: registry.New[admissionv1.ValidatingAdmissionPolicyBinding],
			List:   registry.New[admissionv1.ValidatingAdmissionPolicyBindingList],
			Rules: generationRules(admissionregistration.ValidateValidatingAdmissionPolicyBinding,
				admissionregistration.ValidateValidatingAdmissionPolicyBindingUpdate,
				func(b *admissionv1.ValidatingAdmissionPolicyBinding) (*metav1.ObjectMeta, any) {
					return &b.ObjectMeta, b.Spec
				})},
		{GV: gv, Name: "MutatingAdmissionPolicy", Plural: "mutatingadmissionpolicies",
			Singular: "mutatingadmissionpolicy", Categories: policies,
			Object: registry.New[admissionv1.MutatingAdmissionPolicy],
			List:   registry.New[admissionv1.MutatingAdmissionPolicyList],
			Rules: generationRules(admissionregistration.ValidateMutatingAdmissionPolicy,
				admissionregistration.ValidateMutatingAdmissionPolicyUpdate,
				func(p *admissionv1.MutatingAdmissionPolicy) (*metav1.ObjectMeta, any) {
					return &p.ObjectMeta, p.Spec
				})},
		{GV: gv, Name: "MutatingAdmissionPolicyBinding", Plural: "mutatingadmissionpolicybindings",
			Singular: "mutatingadmissionpolicybinding", Categories: policies,
			Object: registry.New[admissionv1.MutatingAdmissionPolicyBinding],
			List:   registry.New[admissionv1.MutatingAdmissionPolicyBindingList],
			Rules: generationRules(admissionregistration.ValidateMutatingAdmissionPolicyBinding,
				admissionregistration.ValidateMutatingAdmissionPolicyBindingUpdate,
				func(b *admissionv1.MutatingAdmissionPolicyBinding) (*metav1.ObjectMeta, any) {
					return &b.ObjectMeta, b.Spec
				})},
	}
}

// ValidatingPolicies is the resource of ValidatingAdmissionPolicies.
const ValidatingPolicies = "validatingadmissionpolicies"

// generationRules are those of a kind that counts the changes of what it asks for.
func generationRules[T runtime.Object](validate func(T) field.ErrorList,
	validateUpdate func(now, was T) field.ErrorList, parts func(T) (*metav1.ObjectMeta, any)) registry.Rules {
	return registry.Typed[T]{
		PrepareCreate: func(obj T) {
			meta, _ := parts(obj)
			meta.Generation = 1
		},
		Validate: validate,
		PrepareUpdate: func(obj, old T) {
			meta, now := parts(obj)
			_, was := parts(old)
			if !equality.Semantic.DeepEqual(now, was) {
				meta.Generation++
			}
		},
		ValidateUpdate: validateUpdate,
	}.Rules()
}

func validatingPolicyRules() registry.Rules {
	return registry.Typed[*admissionv1.ValidatingAdmissionPolicy]{
		PrepareCreate: func(p *admissionv1.ValidatingAdmissionPolicy) {
			p.Generation, p.Status = 1, admissionv1.ValidatingAdmissionPolicyStatus{}
		},
		Validate: admissionregistration.ValidateValidatingAdmissionPolicy,
		PrepareUpdate: func(p, old *admissionv1.ValidatingAdmissionPolicy) {
			p.Status = old.Status
			if !equality.Semantic.DeepEqual(p.Spec, old.Spec) {
				p.Generation++
			}
		},
		ValidateUpdate: admissionregistration.ValidateValidatingAdmissionPolicyUpdate,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.Rules()
}

func validatingPolicyStatusRules() registry.Rules {
	return registry.Typed[*admissionv1.ValidatingAdmissionPolicy]{
		PrepareUpdate: func(p, old *admissionv1.ValidatingAdmissionPolicy) {
			managed := p.ManagedFields
			metav1.ResetObjectMetaForStatus(&p.ObjectMeta, &old.ObjectMeta)
			p.ManagedFields = managed
			p.Spec = old.Spec
		},
		ValidateUpdate: admissionregistration.ValidateValidatingAdmissionPolicyStatusUpdate,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.Rules()
}
