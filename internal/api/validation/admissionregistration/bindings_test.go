// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// EC-21: bindings of policies are refused for what Kubernetes refuses, with its field paths.
func TestValidatePolicyBindings(t *testing.T) {
	type spec = admissionv1.ValidatingAdmissionPolicyBindingSpec
	deny := ptr.To(admissionv1.DenyAction)
	for _, tc := range []struct {
		what   string
		change func(*spec)
		want   string
	}{
		{"the least", func(*spec) {}, ""},
		{"no policy", func(s *spec) { s.PolicyName = "" }, "spec.policyName: Required"},
		{"bad policy", func(s *spec) { s.PolicyName = "A B" }, "spec.policyName: Invalid"},
		{"no rules", func(s *spec) { s.MatchResources.ResourceRules = nil }, ""},
		{"no actions", func(s *spec) { s.ValidationActions = nil }, "spec.validationActions: Required"},
		{"unknown action", func(s *spec) { s.ValidationActions = []admissionv1.ValidationAction{"x"} }, "spec.validationActions[0]: Unsupported"},
		{"action twice", func(s *spec) { s.ValidationActions = []admissionv1.ValidationAction{"Audit", "Audit"} }, "spec.validationActions[1]: Duplicate"},
		{"Deny and Warn", func(s *spec) { s.ValidationActions = []admissionv1.ValidationAction{"Deny", "Warn"} }, "must not contain both Deny and Warn"},
		{"Warn and Audit", func(s *spec) { s.ValidationActions = []admissionv1.ValidationAction{"Audit", "Warn"} }, ""},
		{"param", func(s *spec) { s.ParamRef = &admissionv1.ParamRef{Name: "a", ParameterNotFoundAction: deny} }, ""},
		{"params", func(s *spec) {
			s.ParamRef = &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}, Namespace: "n", ParameterNotFoundAction: deny}
		}, ""},
		{"neither", func(s *spec) { s.ParamRef = &admissionv1.ParamRef{ParameterNotFoundAction: deny} }, "one of name or selector must be specified"},
		{"both", func(s *spec) {
			s.ParamRef = &admissionv1.ParamRef{Name: "a", Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: deny}
		}, "mutually exclusive"},
		{"no action for a missing param", func(s *spec) { s.ParamRef = &admissionv1.ParamRef{Name: "a"} }, "parameterNotFoundAction: Required"},
		{"another action", func(s *spec) {
			s.ParamRef = &admissionv1.ParamRef{Name: "a", ParameterNotFoundAction: ptr.To(admissionv1.ParameterNotFoundActionType("x"))}
		}, "parameterNotFoundAction: Unsupported"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			b := read(t, leastBinding, SetDefaultsValidatingAdmissionPolicyBinding)
			b.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Deny}
			tc.change(&b.Spec)
			if got := complaints(ValidateValidatingAdmissionPolicyBinding(b)); !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			m := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: b.ObjectMeta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
				PolicyName: b.Spec.PolicyName, ParamRef: b.Spec.ParamRef, MatchResources: b.Spec.MatchResources}}
			want := tc.want
			if strings.Contains(strings.ToLower(tc.what), "action") && !strings.Contains(tc.want, "parameterNotFoundAction") || strings.HasPrefix(tc.what, "Deny") {
				want = ""
			}
			if got := complaints(ValidateMutatingAdmissionPolicyBinding(m)); !strings.Contains(got, want) || (want == "") != (got == "") {
				t.Errorf("mutating: got %q, want %q", got, want)
			}
		})
	}
}
