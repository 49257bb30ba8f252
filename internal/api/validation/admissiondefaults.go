// SPDX-License-Identifier: Apache-2.0

package validation

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		orPointTo(&w.FailurePolicy, admissionv1.Fail)
		orPointTo(&w.MatchPolicy, admissionv1.Equivalent)
		orPointTo(&w.NamespaceSelector, metav1.LabelSelector{})
		orPointTo(&w.ObjectSelector, metav1.LabelSelector{})
		orPointTo(&w.TimeoutSeconds, defaultWebhookSeconds)
		defaultClient(&w.ClientConfig)
		defaultRules(w.Rules)
	}
}

// SetDefaultsMutatingWebhookConfiguration completes every webhook of a configuration.
func SetDefaultsMutatingWebhookConfiguration(c *admissionv1.MutatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		orPointTo(&w.FailurePolicy, admissionv1.Fail)
		orPointTo(&w.MatchPolicy, admissionv1.Equivalent)
		orPointTo(&w.NamespaceSelector, metav1.LabelSelector{})
		orPointTo(&w.ObjectSelector, metav1.LabelSelector{})
		orPointTo(&w.TimeoutSeconds, defaultWebhookSeconds)
		orPointTo(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
		defaultClient(&w.ClientConfig)
		defaultRules(w.Rules)
	}
}

func defaultClient(c *admissionv1.WebhookClientConfig) {
	if c.Service != nil {
		orPointTo(&c.Service.Port, defaultWebhookPort)
	}
}

func defaultRules(rules []admissionv1.RuleWithOperations) {
	for i := range rules {
		orPointTo(&rules[i].Scope, admissionv1.AllScopes)
	}
}

// SetDefaultsValidatingAdmissionPolicy completes a policy.
func SetDefaultsValidatingAdmissionPolicy(p *admissionv1.ValidatingAdmissionPolicy) {
	orPointTo(&p.Spec.FailurePolicy, admissionv1.Fail)
	defaultMatch(p.Spec.MatchConstraints)
}

// SetDefaultsValidatingAdmissionPolicyBinding completes a binding.
func SetDefaultsValidatingAdmissionPolicyBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) {
	defaultMatch(b.Spec.MatchResources)
}

// SetDefaultsMutatingAdmissionPolicy completes a policy.
func SetDefaultsMutatingAdmissionPolicy(p *admissionv1.MutatingAdmissionPolicy) {
	orPointTo(&p.Spec.FailurePolicy, admissionv1.Fail)
	orElse(&p.Spec.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
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
	orPointTo(&m.MatchPolicy, admissionv1.Equivalent)
	orPointTo(&m.NamespaceSelector, metav1.LabelSelector{})
	orPointTo(&m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			orPointTo(&rules[i].Scope, admissionv1.AllScopes)
		}
	}
}
