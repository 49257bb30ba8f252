// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/util/webhook"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

const (
	minWebhookSeconds = 1
	maxWebhookSeconds = 30
)

// ValidateValidatingWebhookConfiguration checks a new configuration of validating webhooks.
func ValidateValidatingWebhookConfiguration(c *admissionv1.ValidatingWebhookConfiguration) field.ErrorList {
	return validatingConfiguration(c, nil)
}

// ValidateValidatingWebhookConfigurationUpdate checks a changed one. Expressions that were there before stay good.
func ValidateValidatingWebhookConfigurationUpdate(now,
	was *admissionv1.ValidatingWebhookConfiguration) field.ErrorList {
	stored := expressionsOf(func(add func(string)) {
		for _, w := range was.Webhooks {
			addConditions(add, w.MatchConditions)
		}
	})
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), validatingConfiguration(now, stored)...)
}

// ValidateMutatingWebhookConfiguration checks a new configuration of mutating webhooks.
func ValidateMutatingWebhookConfiguration(c *admissionv1.MutatingWebhookConfiguration) field.ErrorList {
	return mutatingConfiguration(c, nil)
}

// ValidateMutatingWebhookConfigurationUpdate checks a changed one. Expressions that were there before stay good.
func ValidateMutatingWebhookConfigurationUpdate(now, was *admissionv1.MutatingWebhookConfiguration) field.ErrorList {
	stored := expressionsOf(func(add func(string)) {
		for _, w := range was.Webhooks {
			addConditions(add, w.MatchConditions)
		}
	})
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), mutatingConfiguration(now, stored)...)
}

// hook is what validating and mutating webhooks have in common.
type hook struct {
	name                string
	client              *admissionv1.WebhookClientConfig
	rules               []admissionv1.RuleWithOperations
	failure             *admissionv1.FailurePolicyType
	match               *admissionv1.MatchPolicyType
	namespaces, objects *metav1.LabelSelector
	sideEffects         *admissionv1.SideEffectClass
	seconds             *int32
	versions            []string
	conditions          []admissionv1.MatchCondition
	reinvocation        *admissionv1.ReinvocationPolicyType
}

func validatingConfiguration(c *admissionv1.ValidatingWebhookConfiguration, stored map[string]bool) rules.Errs {
	hooks := make([]hook, len(c.Webhooks))
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		hooks[i] = hook{w.Name, &w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.NamespaceSelector,
			w.ObjectSelector, w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions, w.MatchConditions, nil}
	}
	return configuration(&c.ObjectMeta, hooks, stored)
}

func mutatingConfiguration(c *admissionv1.MutatingWebhookConfiguration, stored map[string]bool) rules.Errs {
	hooks := make([]hook, len(c.Webhooks))
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		hooks[i] = hook{w.Name, &w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.NamespaceSelector,
			w.ObjectSelector, w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions, w.MatchConditions,
			w.ReinvocationPolicy}
	}
	return configuration(&c.ObjectMeta, hooks, stored)
}

func configuration(m *metav1.ObjectMeta, hooks []hook, stored map[string]bool) rules.Errs {
	all := rules.ClusterMeta(m, apivalidation.NameIsDNSSubdomain)
	compile := newExpressions(stored)
	names := map[string]bool{}
	for i := range hooks {
		at := field.NewPath("webhooks").Index(i)
		if names[hooks[i].name] {
			all = append(all, field.Duplicate(at.Child("name"), hooks[i].name))
		}
		names[hooks[i].name] = true
		all = append(all, hooks[i].validate(at, compile)...)
	}
	return all
}

func (h *hook) validate(at *field.Path, compile *expressions) rules.Errs {
	all := validation.IsFullyQualifiedName(at.Child("name"), h.name)
	all = append(all, webhookClient(at.Child("clientConfig"), h.client)...)
	for i := range h.rules {
		all = append(all, admissionRule(at.Child("rules").Index(i), &h.rules[i], allOperations())...)
	}
	all = append(all, rules.OneOfIfSet(at.Child("failurePolicy"), h.failure, admissionv1.Ignore, admissionv1.Fail)...)
	all = append(all, rules.OneOfIfSet(at.Child("matchPolicy"), h.match, admissionv1.Exact, admissionv1.Equivalent)...)
	all = append(all, rules.OneOfIfSet(at.Child("reinvocationPolicy"), h.reinvocation,
		admissionv1.NeverReinvocationPolicy, admissionv1.IfNeededReinvocationPolicy)...)
	all = append(all, selector(at.Child("namespaceSelector"), h.namespaces)...)
	all = append(all, selector(at.Child("objectSelector"), h.objects)...)
	if h.sideEffects == nil {
		all = append(all, field.Required(at.Child("sideEffects"), "must specify one of None, NoneOnDryRun"))
	}
	all = append(all, rules.OneOfIfSet(at.Child("sideEffects"), h.sideEffects, admissionv1.SideEffectClassNone,
		admissionv1.SideEffectClassNoneOnDryRun)...)
	if h.seconds != nil && (*h.seconds < minWebhookSeconds || *h.seconds > maxWebhookSeconds) {
		all = append(all, field.Invalid(at.Child("timeoutSeconds"), *h.seconds,
			"the timeout must be between 1 and 30 seconds"))
	}
	all = append(all, reviewVersions(at.Child("admissionReviewVersions"), h.versions)...)
	return append(all, matchConditions(at.Child("matchConditions"), h.conditions, compile, false)...)
}

func webhookClient(at *field.Path, c *admissionv1.WebhookClientConfig) rules.Errs {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return rules.Errs{field.Required(at, "exactly one of url or service is required")}
	case c.URL != nil:
		return webhook.ValidateWebhookURL(at.Child("url"), *c.URL, true)
	}
	port := int32(defaultWebhookPort)
	if c.Service.Port != nil {
		port = *c.Service.Port
	}
	return webhook.ValidateWebhookService(at.Child("service"), c.Service.Namespace, c.Service.Name, c.Service.Path,
		port)
}

// reviewVersions: the server speaks v1 and v1beta1 of AdmissionReview; a webhook must take one of them.
func reviewVersions(at *field.Path, list []string) (all rules.Errs) {
	known := []string{"v1", "v1beta1"}
	if len(list) == 0 {
		return rules.Errs{field.Required(at, "must specify one of v1, v1beta1")}
	}
	some := false
	for i, version := range list {
		all = append(all, rules.Valid(at.Index(i), version, validation.IsDNS1035Label(version))...)
		if slices.Contains(list[:i], version) {
			all = append(all, field.Duplicate(at.Index(i), version))
		}
		some = some || slices.Contains(known, version)
	}
	if !some {
		all = append(all, field.Invalid(at, list, "must include at least one of v1, v1beta1"))
	}
	return all
}
