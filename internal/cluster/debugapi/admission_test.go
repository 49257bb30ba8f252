// SPDX-License-Identifier: Apache-2.0

package debugapi_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	admissionreviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/options"
	"github.com/wherryproject/wherry/internal/cluster/debugapi/rights"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// about is a rule for what is asked of the API of debugging.
func about(resource string) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Connect},
		Rule: admissionv1.Rule{APIGroups: []string{wire.Group}, APIVersions: []string{wire.Version},
			Resources: []string{resource}}}
}

// The cluster's own rules judge what is asked for: a ValidatingAdmissionPolicy by the fields of the request, and a
// webhook that is shown it. Proves DA-06.
func TestAdmission(t *testing.T) {
	admin := clientOf(t, adminConfig(t)).AdmissionregistrationV1()
	const name = "images-of-debuggers"
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
				{RuleWithOperations: about("pods/exec")}}},
			Validations: []admissionv1.Validation{{Expression: `object.image.startsWith("registry.example/")`,
				Message: "images come from registry.example"}}}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
	var mu sync.Mutex
	var seen []*admissionreviewv1.AdmissionRequest
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review admissionreviewv1.AdmissionReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		seen = append(seen, review.Request)
		mu.Unlock()
		review.Response = &admissionreviewv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(hook.Close)
	webhook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionv1.ValidatingWebhook{{Name: "debuggers.example.com",
			Rules: []admissionv1.RuleWithOperations{
				about("pods/shell")}, SideEffects: ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, ClientConfig: admissionv1.WebhookClientConfig{URL: &hook.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})}}}}
	_, err := admin.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
	if err == nil {
		_, err = admin.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = admin.ValidatingWebhookConfigurations().Create(t.Context(), webhook, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, o := context.Background(), metav1.DeleteOptions{}
		for _, err := range []error{admin.ValidatingAdmissionPolicyBindings().Delete(ctx, name, o),
			admin.ValidatingAdmissionPolicies().Delete(ctx, name, o),
			admin.ValidatingWebhookConfigurations().Delete(ctx, name, o)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	c := newChain(t) // it has read the rules when it is ready
	shop := c.place(t)
	c.pod(t, shop, "web", c.node, nil)
	jane, who := c.somebody(t, shop, rights.RoleDebug)
	_, err = plain(t, jane, http.MethodGet, path(shop, "web", wire.Exec), url.Values{"stdout": {"true"},
		"image": {"evil.example/a"}})
	refusedWith(t, "an image that is not welcome", err, http.StatusUnprocessableEntity,
		"images come from registry.example")
	if c.agent.count() != 0 {
		t.Error("the agent was asked all the same")
	}
	if out, err := run(t, jane, path(shop, "web", wire.Exec), url.Values{"image": {"registry.example/a"}},
		""); err != nil {
		t.Errorf("an image that is welcome: %q, %v", out, err)
	}
	if _, err := run(t, jane, path(shop, "web", wire.Shell), url.Values{"profile": {"baseline"}}, ""); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 1 {
		t.Fatalf("the webhook was shown %d requests", len(seen))
	}
	var shown options.Shell
	if err := json.Unmarshal(seen[0].Object.Raw, &shown); err != nil {
		t.Fatal(err)
	}
	if r := seen[0]; r.Operation != admissionreviewv1.Connect || r.Kind.Kind != "ShellOptions" || r.Name != "web" ||
		r.Namespace != shop || r.SubResource != wire.Shell || r.UserInfo.Username != who ||
		shown.Profile != "baseline" || shown.Container != "main" || shown.Image != "wherry.dev/toolbox" || shown.TTL != "1h0m0s" ||
		shown.Memory != "512Mi" || shown.CPUs != "1" {
		t.Errorf("the webhook was shown %+v with %s", r, r.Object.Raw)
	}
}
