// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

// Defaults of the kinds of admissionregistration.k8s.io, as its API reference has them. None may be forgotten: what
// judges requests takes an absent selector for one that matches nothing, so that a policy without it would silently let
// everything pass.

const (
	defaultWebhookSeconds = 10
	defaultWebhookPort    = 443
)

// SetDefaultsValidatingWebhookConfiguration completes every webhook of a configuration.
func SetDefaultsValidatingWebhookConfiguration(c *admissionv1.ValidatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		rules.OrPointTo(&w.FailurePolicy, admissionv1.Fail)
		rules.OrPointTo(&w.MatchPolicy, admissionv1.Equivalent)
		rules.OrPointTo(&w.NamespaceSelector, metav1.LabelSelector{})
		rules.OrPointTo(&w.ObjectSelector, metav1.LabelSelector{})
		rules.OrPointTo(&w.TimeoutSeconds, defaultWebhookSeconds)
		defaultClient(&w.ClientConfig)
		defaultRules(w.Rules)
	}
}

// SetDefaultsMutatingWebhookConfiguration completes every webhook of a configuration.
func SetDefaultsMutatingWebhookConfiguration(c *admissionv1.MutatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		rules.OrPointTo(&w.FailurePolicy, admissionv1.Fail)
		rules.OrPointTo(&w.MatchPolicy, admissionv1.Equivalent)
		rules.OrPointTo(&w.NamespaceSelector, metav1.LabelSelector{})
		rules.OrPointTo(&w.ObjectSelector, metav1.LabelSelector{})
		rules.OrPointTo(&w.TimeoutSeconds, defaultWebhookSeconds)
		rules.OrPointTo(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
		defaultClient(&w.ClientConfig)
		defaultRules(w.Rules)
	}
}

func defaultClient(c *admissionv1.WebhookClientConfig) {
	if c.Service != nil {
		rules.OrPointTo(&c.Service.Port, defaultWebhookPort)
	}
}

func defaultRules(list []admissionv1.RuleWithOperations) {
	for i := range list {
		rules.OrPointTo(&list[i].Scope, admissionv1.AllScopes)
	}
}

// SetDefaultsValidatingAdmissionPolicy completes a policy.
func SetDefaultsValidatingAdmissionPolicy(p *admissionv1.ValidatingAdmissionPolicy) {
	rules.OrPointTo(&p.Spec.FailurePolicy, admissionv1.Fail)
	defaultMatch(p.Spec.MatchConstraints)
}

// SetDefaultsValidatingAdmissionPolicyBinding completes a binding.
func SetDefaultsValidatingAdmissionPolicyBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) {
	defaultMatch(b.Spec.MatchResources)
}

// SetDefaultsMutatingAdmissionPolicy completes a policy.
func SetDefaultsMutatingAdmissionPolicy(p *admissionv1.MutatingAdmissionPolicy) {
	rules.OrPointTo(&p.Spec.FailurePolicy, admissionv1.Fail)
	rules.OrElse(&p.Spec.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
	defaultMatch(p.Spec.MatchConstraints)
}

// SetDefaultsMutatingAdmissionPolicyBinding completes a binding.
func SetDefaultsMutatingAdmissionPolicyBinding(b *admissionv1.MutatingAdmissionPolicyBinding) {
	defaultMatch(b.Spec.MatchResources)
}

// defaultMatch completes what a policy or binding matches; nil stays nil: it matches whatever the other of the two
// does.
func defaultMatch(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	rules.OrPointTo(&m.MatchPolicy, admissionv1.Equivalent)
	rules.OrPointTo(&m.NamespaceSelector, metav1.LabelSelector{})
	rules.OrPointTo(&m.ObjectSelector, metav1.LabelSelector{})
	for _, list := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range list {
			rules.OrPointTo(&list[i].Scope, admissionv1.AllScopes)
		}
	}
}
