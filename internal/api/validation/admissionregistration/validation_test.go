// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// read decodes a manifest strictly and completes it.
func read[T any](t *testing.T, text string, complete func(*T)) *T {
	t.Helper()
	obj := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), obj); err != nil {
		t.Fatal(err)
	}
	complete(obj)
	return obj
}

const leastWebhooks = `
metadata: {name: c}
webhooks:
- name: a.example.com
  clientConfig: {service: {name: s, namespace: n}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  sideEffects: None
  admissionReviewVersions: [v1]
`

const leastPolicy = `
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
    excludeResourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
`

const leastBinding = `
metadata: {name: b}
spec:
  policyName: p
  matchResources: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}
`

// EC-21: every field that has a default in the API reference gets it; one that was forgotten would make a webhook or policy match
// nothing, silently.
func TestAdmissionDefaults(t *testing.T) {
	equal := func(what string, got, want any) {
		t.Helper()
		if !sameValue(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	empty := metav1.LabelSelector{}
	v := read(t, leastWebhooks, SetDefaultsValidatingWebhookConfiguration).Webhooks[0]
	equal("failurePolicy", v.FailurePolicy, ptr.To(admissionv1.Fail))
	equal("matchPolicy", v.MatchPolicy, ptr.To(admissionv1.Equivalent))
	equal("namespaceSelector", v.NamespaceSelector, &empty)
	equal("objectSelector", v.ObjectSelector, &empty)
	equal("timeoutSeconds", v.TimeoutSeconds, ptr.To[int32](10))
	equal("port", v.ClientConfig.Service.Port, ptr.To[int32](443))
	equal("scope", v.Rules[0].Scope, ptr.To(admissionv1.AllScopes))

	m := read(t, leastWebhooks, SetDefaultsMutatingWebhookConfiguration).Webhooks[0]
	equal("failurePolicy", m.FailurePolicy, ptr.To(admissionv1.Fail))
	equal("matchPolicy", m.MatchPolicy, ptr.To(admissionv1.Equivalent))
	equal("namespaceSelector", m.NamespaceSelector, &empty)
	equal("objectSelector", m.ObjectSelector, &empty)
	equal("timeoutSeconds", m.TimeoutSeconds, ptr.To[int32](10))
	equal("port", m.ClientConfig.Service.Port, ptr.To[int32](443))
	equal("scope", m.Rules[0].Scope, ptr.To(admissionv1.AllScopes))
	equal("reinvocationPolicy", m.ReinvocationPolicy, ptr.To(admissionv1.NeverReinvocationPolicy))

	match := func(what string, r *admissionv1.MatchResources) {
		t.Helper()
		equal(what+".matchPolicy", r.MatchPolicy, ptr.To(admissionv1.Equivalent))
		equal(what+".namespaceSelector", r.NamespaceSelector, &empty)
		equal(what+".objectSelector", r.ObjectSelector, &empty)
		for _, rule := range append(r.ResourceRules, r.ExcludeResourceRules...) {
			equal(what+".scope", rule.Scope, ptr.To(admissionv1.AllScopes))
		}
	}
	vp := read(t, leastPolicy, SetDefaultsValidatingAdmissionPolicy).Spec
	equal("failurePolicy", vp.FailurePolicy, ptr.To(admissionv1.Fail))
	match("validating policy", vp.MatchConstraints)
	mp := read(t, leastPolicy, SetDefaultsMutatingAdmissionPolicy).Spec
	equal("failurePolicy", mp.FailurePolicy, ptr.To(admissionv1.Fail))
	equal("reinvocationPolicy", mp.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
	match("mutating policy", mp.MatchConstraints)
	match("validating binding", read(t, leastBinding, SetDefaultsValidatingAdmissionPolicyBinding).Spec.MatchResources)
	match("mutating binding", read(t, leastBinding, SetDefaultsMutatingAdmissionPolicyBinding).Spec.MatchResources)

	var none admissionv1.ValidatingAdmissionPolicyBinding
	SetDefaultsValidatingAdmissionPolicyBinding(&none)
	if none.Spec.MatchResources != nil {
		t.Error("a binding that says nothing of what it matches must go on saying nothing")
	}
}

func sameValue(a, b any) bool {
	x, _ := yaml.Marshal(a)
	y, _ := yaml.Marshal(b)
	return string(x) == string(y)
}

// complaints are errors as "path: words", joined.
func complaints(list field.ErrorList) string {
	var all []string
	for _, e := range list {
		all = append(all, e.Error())
	}
	return strings.Join(all, "\n")
}

// EC-21: configurations of webhooks are refused for what Kubernetes refuses, with its field paths.
func TestValidateWebhookConfigurations(t *testing.T) {
	for _, tc := range []struct {
		what   string
		change func(*admissionv1.MutatingWebhook)
		want   string // part of the complaint, empty: none
	}{
		{"the least", func(*admissionv1.MutatingWebhook) {}, ""},
		{"name of two parts", func(w *admissionv1.MutatingWebhook) { w.Name = "a.com" }, "webhooks[0].name: Invalid value"},
		{"no name", func(w *admissionv1.MutatingWebhook) { w.Name = "" }, "webhooks[0].name: Required"},
		{"no side effects", func(w *admissionv1.MutatingWebhook) { w.SideEffects = nil }, "webhooks[0].sideEffects: Required"},
		{"side effects Some", func(w *admissionv1.MutatingWebhook) { w.SideEffects = ptr.To(admissionv1.SideEffectClassSome) }, `supported values: "None", "NoneOnDryRun"`},
		{"side effects Unknown", func(w *admissionv1.MutatingWebhook) { w.SideEffects = ptr.To(admissionv1.SideEffectClassUnknown) }, "webhooks[0].sideEffects: Unsupported"},
		{"NoneOnDryRun", func(w *admissionv1.MutatingWebhook) { w.SideEffects = ptr.To(admissionv1.SideEffectClassNoneOnDryRun) }, ""},
		{"no versions", func(w *admissionv1.MutatingWebhook) { w.AdmissionReviewVersions = nil }, "admissionReviewVersions: Required"},
		{"unknown versions only", func(w *admissionv1.MutatingWebhook) { w.AdmissionReviewVersions = []string{"v2"} }, "must include at least one of v1, v1beta1"},
		{"a known version after an unknown one", func(w *admissionv1.MutatingWebhook) { w.AdmissionReviewVersions = []string{"v2", "v1beta1"} }, ""},
		{"version twice", func(w *admissionv1.MutatingWebhook) { w.AdmissionReviewVersions = []string{"v1", "v1"} }, "admissionReviewVersions[1]: Duplicate"},
		{"bad version", func(w *admissionv1.MutatingWebhook) { w.AdmissionReviewVersions = []string{"v1", "V_1"} }, "admissionReviewVersions[1]: Invalid"},
		{"0 seconds", func(w *admissionv1.MutatingWebhook) { w.TimeoutSeconds = ptr.To[int32](0) }, "between 1 and 30 seconds"},
		{"31 seconds", func(w *admissionv1.MutatingWebhook) { w.TimeoutSeconds = ptr.To[int32](31) }, "between 1 and 30 seconds"},
		{"30 seconds", func(w *admissionv1.MutatingWebhook) { w.TimeoutSeconds = ptr.To[int32](30) }, ""},
		{"failure policy", func(w *admissionv1.MutatingWebhook) { w.FailurePolicy = ptr.To(admissionv1.FailurePolicyType("x")) }, "failurePolicy: Unsupported"},
		{"match policy", func(w *admissionv1.MutatingWebhook) { w.MatchPolicy = ptr.To(admissionv1.MatchPolicyType("x")) }, "matchPolicy: Unsupported"},
		{"reinvocation", func(w *admissionv1.MutatingWebhook) {
			w.ReinvocationPolicy = ptr.To(admissionv1.ReinvocationPolicyType("x"))
		}, "reinvocationPolicy: Unsupported"},
		{"neither url nor service", func(w *admissionv1.MutatingWebhook) { w.ClientConfig.Service = nil }, "exactly one of url or service is required"},
		{"both", func(w *admissionv1.MutatingWebhook) { w.ClientConfig.URL = ptr.To("https://a") }, "exactly one of url or service is required"},
		{"http", func(w *admissionv1.MutatingWebhook) {
			w.ClientConfig = admissionv1.WebhookClientConfig{URL: ptr.To("http://a")}
		}, "clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme"},
		{"user in url", func(w *admissionv1.MutatingWebhook) {
			w.ClientConfig = admissionv1.WebhookClientConfig{URL: ptr.To("https://u:p@a")}
		}, "user information is not permitted"},
		{"query", func(w *admissionv1.MutatingWebhook) {
			w.ClientConfig = admissionv1.WebhookClientConfig{URL: ptr.To("https://a/?b")}
		}, "query parameters are not permitted"},
		{"service without namespace", func(w *admissionv1.MutatingWebhook) { w.ClientConfig.Service.Namespace = "" }, "clientConfig.service.namespace: Required"},
		{"port", func(w *admissionv1.MutatingWebhook) { w.ClientConfig.Service.Port = ptr.To[int32](70000) }, "clientConfig.service.port: Invalid"},
		{"path", func(w *admissionv1.MutatingWebhook) { w.ClientConfig.Service.Path = ptr.To("x") }, "must start with a '/'"},
		{"selector", func(w *admissionv1.MutatingWebhook) {
			w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		}, "namespaceSelector.matchLabels"},
		{"no operations", func(w *admissionv1.MutatingWebhook) { w.Rules[0].Operations = nil }, "rules[0].operations: Required"},
		{"operation", func(w *admissionv1.MutatingWebhook) { w.Rules[0].Operations = []admissionv1.OperationType{"create"} }, "rules[0].operations[0]: Unsupported"},
		{"operations and *", func(w *admissionv1.MutatingWebhook) {
			w.Rules[0].Operations = []admissionv1.OperationType{"*", "CREATE"}
		}, "must not specify other operations"},
		{"no groups", func(w *admissionv1.MutatingWebhook) { w.Rules[0].APIGroups = nil }, "rules[0].apiGroups: Required"},
		{"groups and *", func(w *admissionv1.MutatingWebhook) { w.Rules[0].APIGroups = []string{"*", ""} }, "must not specify other values"},
		{"no versions of the API", func(w *admissionv1.MutatingWebhook) { w.Rules[0].APIVersions = []string{""} }, "rules[0].apiVersions[0]: Required"},
		{"no resources", func(w *admissionv1.MutatingWebhook) { w.Rules[0].Resources = nil }, "rules[0].resources: Required"},
		{"resource and subresource", func(w *admissionv1.MutatingWebhook) { w.Rules[0].Resources = []string{"pods", "pods/exec"} }, ""},
		{"everything but subresources, and a subresource", func(w *admissionv1.MutatingWebhook) { w.Rules[0].Resources = []string{"*", "pods/exec"} }, ""},
		{"everything, and a resource", func(w *admissionv1.MutatingWebhook) { w.Rules[0].Resources = []string{"*", "pods"} }, "if '*' is present, must not specify pods"},
		{"every subresource, and one", func(w *admissionv1.MutatingWebhook) { w.Rules[0].Resources = []string{"pods/*", "pods/exec"} }, "if 'pods/*' is present, must not specify pods/exec"},
		{"subresource of everything, and of one", func(w *admissionv1.MutatingWebhook) { w.Rules[0].Resources = []string{"*/status", "pods/status"} }, "if '*/status' is present"},
		{"all and anything", func(w *admissionv1.MutatingWebhook) { w.Rules[0].Resources = []string{"pods", "*/*"} }, "if '*/*' is present, must not specify pods"},
		{"two slashes", func(w *admissionv1.MutatingWebhook) { w.Rules[0].Resources = []string{"a/b/c"} }, "at most one '/'"},
		{"scope", func(w *admissionv1.MutatingWebhook) { w.Rules[0].Scope = ptr.To(admissionv1.ScopeType("x")) }, "rules[0].scope: Unsupported"},
		{"condition", func(w *admissionv1.MutatingWebhook) {
			w.MatchConditions = []admissionv1.MatchCondition{{Name: "a", Expression: "object.metadata.name != 'x' && authorizer.requestResource.check('get').allowed()"}}
		}, ""},
		{"condition that does not compile", func(w *admissionv1.MutatingWebhook) {
			w.MatchConditions = []admissionv1.MatchCondition{{Name: "a", Expression: "objekt.x == 1"}}
		}, "matchConditions[0].expression: Invalid value"},
		{"condition that is no bool", func(w *admissionv1.MutatingWebhook) {
			w.MatchConditions = []admissionv1.MatchCondition{{Name: "a", Expression: "1"}}
		}, "must evaluate to bool"},
		{"conditions of one name", func(w *admissionv1.MutatingWebhook) {
			w.MatchConditions = []admissionv1.MatchCondition{{Name: "a", Expression: "true"}, {Name: "a", Expression: "true"}}
		}, "matchConditions[1].name: Duplicate"},
		{"condition without name", func(w *admissionv1.MutatingWebhook) {
			w.MatchConditions = []admissionv1.MatchCondition{{Expression: "true"}}
		}, "matchConditions[0].name: Required"},
		{"condition without expression", func(w *admissionv1.MutatingWebhook) {
			w.MatchConditions = []admissionv1.MatchCondition{{Name: "a"}}
		}, "matchConditions[0].expression: Required"},
		{"params in a webhook", func(w *admissionv1.MutatingWebhook) {
			w.MatchConditions = []admissionv1.MatchCondition{{Name: "a", Expression: "params.x == 1"}}
		}, "undeclared reference to 'params'"},
		{"65 conditions", func(w *admissionv1.MutatingWebhook) {
			w.MatchConditions = make([]admissionv1.MatchCondition, 65)
		}, "Too many: 65: must have at most 64 items"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			c := read(t, leastWebhooks, SetDefaultsMutatingWebhookConfiguration)
			tc.change(&c.Webhooks[0])
			if got := complaints(ValidateMutatingWebhookConfiguration(c)); !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			v := validatingOf(c)
			if got := complaints(ValidateValidatingWebhookConfiguration(v)); tc.what != "reinvocation" && (!strings.Contains(got, tc.want) || (tc.want == "") != (got == "")) {
				t.Errorf("validating: got %q, want %q", got, tc.want)
			}
		})
	}
	c := read(t, leastWebhooks, SetDefaultsMutatingWebhookConfiguration)
	c.Webhooks = append(c.Webhooks, c.Webhooks[0])
	if got := complaints(ValidateMutatingWebhookConfiguration(c)); !strings.Contains(got, "webhooks[1].name: Duplicate") {
		t.Errorf("two of one name: %q", got)
	}
}

func validatingOf(c *admissionv1.MutatingWebhookConfiguration) *admissionv1.ValidatingWebhookConfiguration {
	v := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: c.ObjectMeta}
	for _, w := range c.Webhooks {
		v.Webhooks = append(v.Webhooks, admissionv1.ValidatingWebhook{Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy,
			MatchPolicy: w.MatchPolicy, NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
			TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions})
	}
	return v
}

// EC-21: validating policies, their expressions too, are refused for what Kubernetes refuses.
func TestValidateValidatingAdmissionPolicies(t *testing.T) {
	type spec = admissionv1.ValidatingAdmissionPolicySpec
	params := &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	rule := func(v admissionv1.Validation) func(*spec) {
		return func(s *spec) { s.Validations = []admissionv1.Validation{v} }
	}
	audits := func(a ...admissionv1.AuditAnnotation) func(*spec) { return func(s *spec) { s.AuditAnnotations = a } }
	for _, tc := range []struct {
		what   string
		change func(*spec)
		want   string
	}{
		{"the least", func(*spec) {}, ""},
		{"nothing to validate", func(s *spec) { s.Validations = nil }, "validations or auditAnnotations must be non-empty"},
		{"audit only", func(s *spec) {
			s.Validations = nil
			s.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "k", ValueExpression: "'name ' + object.metadata.name"}}
		}, ""},
		{"no constraints", func(s *spec) { s.MatchConstraints = nil }, "spec.matchConstraints: Required"},
		{"no rules", func(s *spec) { s.MatchConstraints.ResourceRules = nil }, "spec.matchConstraints.resourceRules: Required"},
		{"resource names", func(s *spec) { s.MatchConstraints.ResourceRules[0].ResourceNames = []string{"a", "a"} }, "resourceNames[1]: Duplicate"},
		{"failure policy", func(s *spec) { s.FailurePolicy = ptr.To(admissionv1.FailurePolicyType("x")) }, "spec.failurePolicy: Unsupported"},
		{"syntax", rule(admissionv1.Validation{Expression: "object."}), "spec.validations[0].expression: Invalid value"},
		{"type", rule(admissionv1.Validation{Expression: "1 + 1"}), "must evaluate to bool but got int"},
		{"no expression", rule(admissionv1.Validation{}), "spec.validations[0].expression: Required"},
		{"unknown variable", rule(admissionv1.Validation{Expression: "variables.x"}), "undefined field 'x'"},
		{"params without kind", rule(admissionv1.Validation{Expression: "params == null"}), "undeclared reference to 'params'"},
		{"params with kind", func(s *spec) {
			s.ParamKind = params
			s.Validations = []admissionv1.Validation{{Expression: "params == null || params.data.x == 'y'"}}
		}, ""},
		{"param kind without version", func(s *spec) { s.ParamKind = &admissionv1.ParamKind{Kind: "X"} }, "spec.paramKind.apiVersion: Required"},
		{"param kind with bad version", func(s *spec) { s.ParamKind = &admissionv1.ParamKind{Kind: "X", APIVersion: "a/b/c"} }, "spec.paramKind.apiVersion: Invalid"},
		{"param kind without kind", func(s *spec) { s.ParamKind = &admissionv1.ParamKind{APIVersion: "v1"} }, "spec.paramKind.kind: Required"},
		{"message with a line break", rule(admissionv1.Validation{Expression: "true", Message: "a\nb"}), "must not contain line breaks"},
		{"blank message", rule(admissionv1.Validation{Expression: "true", Message: "  "}), "must be non-empty if specified"},
		{"no message for lines", rule(admissionv1.Validation{Expression: "true ||\nfalse"}), "must be specified if expression contains line breaks"},
		{"message expression", rule(admissionv1.Validation{Expression: "true", MessageExpression: "'no ' + object.metadata.name"}), ""},
		{"message expression of another type", rule(admissionv1.Validation{Expression: "true", MessageExpression: "1"}), "messageExpression: Invalid value"},
		{"message expression with authorizer", rule(admissionv1.Validation{Expression: "true", MessageExpression: "string(authorizer.path('/').check('get').allowed())"}), "undeclared reference to 'authorizer'"},
		{"reason", rule(admissionv1.Validation{Expression: "true", Reason: ptr.To(metav1.StatusReasonConflict)}), "spec.validations[0].reason: Unsupported"},
		{"audit key twice", audits(admissionv1.AuditAnnotation{Key: "k", ValueExpression: "'a'"}, admissionv1.AuditAnnotation{Key: "k", ValueExpression: "'a'"}), "auditAnnotations[1].key: Duplicate"},
		{"audit key with prefix", audits(admissionv1.AuditAnnotation{Key: "a/k", ValueExpression: "'a'"}), "must not contain a '/'"},
		{"audit value", audits(admissionv1.AuditAnnotation{Key: "k", ValueExpression: "1"}), "valueExpression: Invalid value"},
		{"long audit value", audits(admissionv1.AuditAnnotation{Key: "k", ValueExpression: "'" + strings.Repeat("a", 5200) + "'"}), "valueExpression: Too long"},
		{"21 audit annotations", audits(make([]admissionv1.AuditAnnotation, 21)...), "Too many: 21"},
		{"variables", func(s *spec) {
			s.Variables = []admissionv1.Variable{{Name: "n", Expression: "size(object.spec.containers)"}, {Name: "many", Expression: "variables.n > 3"}}
			s.Validations = []admissionv1.Validation{{Expression: "!variables.many"}}
		}, ""},
		{"variables in the wrong order", func(s *spec) {
			s.Variables = []admissionv1.Variable{{Name: "many", Expression: "variables.n > 3"}, {Name: "n", Expression: "1"}}
		}, "spec.variables[0].expression: Invalid value"},
		{"type of a variable", func(s *spec) {
			s.Variables = []admissionv1.Variable{{Name: "n", Expression: "1"}}
			s.Validations = []admissionv1.Validation{{Expression: "variables.n"}}
		}, "must evaluate to bool"},
		{"variable's name", func(s *spec) { s.Variables = []admissionv1.Variable{{Name: "a-b", Expression: "1"}} }, "not a valid CEL identifier"},
		{"reserved name", func(s *spec) { s.Variables = []admissionv1.Variable{{Name: "for", Expression: "1"}} }, "not a valid CEL identifier"},
		{"variable twice", func(s *spec) {
			s.Variables = []admissionv1.Variable{{Name: "a", Expression: "1"}, {Name: "a", Expression: "1"}}
		}, "spec.variables[1].name: Duplicate"},
		{"variables are not there for conditions", func(s *spec) {
			s.Variables = []admissionv1.Variable{{Name: "a", Expression: "true"}}
			s.MatchConditions = []admissionv1.MatchCondition{{Name: "c", Expression: "variables.a"}}
		}, "spec.matchConditions[0].expression: Invalid"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			p := read(t, leastPolicy, SetDefaultsValidatingAdmissionPolicy)
			p.Spec.Validations = []admissionv1.Validation{{Expression: "object != null"}}
			tc.change(&p.Spec)
			if got := complaints(ValidateValidatingAdmissionPolicy(p)); !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// EC-21: so are mutating policies.
func TestValidateMutatingAdmissionPolicies(t *testing.T) {
	type spec = admissionv1.MutatingAdmissionPolicySpec
	apply := func(x string) admissionv1.Mutation {
		return admissionv1.Mutation{PatchType: admissionv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: x}}
	}
	json := func(x string) admissionv1.Mutation {
		return admissionv1.Mutation{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: x}}
	}
	for _, tc := range []struct {
		what   string
		change func(*spec)
		want   string
	}{
		{"apply", func(s *spec) {
			s.Mutations = []admissionv1.Mutation{apply(`Object{metadata: Object.metadata{labels: {"a": "b"}}}`)}
		}, ""},
		{"patch", func(s *spec) {
			s.Mutations = []admissionv1.Mutation{json(`[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b"), value: "c"}]`)}
		}, ""},
		{"none", func(*spec) {}, "mutations must be non-empty"},
		{"apply of no object", func(s *spec) { s.Mutations = []admissionv1.Mutation{apply("1")} }, "applyConfiguration.expression: Invalid"},
		{"patch of no list", func(s *spec) { s.Mutations = []admissionv1.Mutation{json("1")} }, "jsonPatch.expression: Invalid"},
		{"no type", func(s *spec) { s.Mutations = []admissionv1.Mutation{{}} }, "mutations[0].patchType: Required"},
		{"another type", func(s *spec) { s.Mutations = []admissionv1.Mutation{{PatchType: "Merge"}} }, "mutations[0].patchType: Unsupported"},
		{"apply without", func(s *spec) { s.Mutations = []admissionv1.Mutation{{PatchType: "ApplyConfiguration"}} }, "applyConfiguration: Required"},
		{"patch without", func(s *spec) { s.Mutations = []admissionv1.Mutation{{PatchType: "JSONPatch"}} }, "jsonPatch: Required"},
		{"both", func(s *spec) {
			m := json(`[JSONPatch{op: "remove", path: "/x"}]`)
			m.ApplyConfiguration = &admissionv1.ApplyConfiguration{Expression: "Object{}"}
			s.Mutations = []admissionv1.Mutation{m}
		}, "applyConfiguration: Forbidden"},
		{"deletions", func(s *spec) {
			s.Mutations = []admissionv1.Mutation{json(`[JSONPatch{op: "remove", path: "/x"}]`)}
			s.MatchConstraints.ResourceRules[0].Operations = []admissionv1.OperationType{admissionv1.Delete}
		}, `supported values: "*", "CREATE", "UPDATE", "CONNECT"`},
		{"reinvocation", func(s *spec) {
			s.Mutations = []admissionv1.Mutation{json(`[JSONPatch{op: "remove", path: "/x"}]`)}
			s.ReinvocationPolicy = "Always"
		}, "spec.reinvocationPolicy: Unsupported"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			p := read(t, leastPolicy, SetDefaultsMutatingAdmissionPolicy)
			tc.change(&p.Spec)
			if got := complaints(ValidateMutatingAdmissionPolicy(p)); !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
