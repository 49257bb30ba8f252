// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

var admissionGV = admissionv1.SchemeGroupVersion

// identity is a server's certificate for some names, and the CA bundle that trusts it.
type identity struct {
	cert tls.Certificate
	ca   []byte
}

func newIdentity(t testing.TB, names ...string) identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject: pkix.Name{CommonName: "webhook"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return identity{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// webhook is a real HTTPS server that answers reviews. It remembers what it was asked.
type webhook struct {
	identity
	url    string
	answer func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse

	mu    sync.Mutex
	asked []reviewv1.AdmissionRequest
}

// newWebhook serves on 127.0.0.1 with a certificate for names. A nil answer allows everything.
func newWebhook(t testing.TB, answer func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse,
	names ...string) *webhook {
	t.Helper()
	return newWebhookOn(t, "127.0.0.1", answer, append(names, "127.0.0.1")...)
}

func newWebhookOn(t testing.TB, address string, answer func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse,
	names ...string) *webhook {
	t.Helper()
	w := &webhook{answer: answer}
	w.identity, w.url = serveHookOn(t, address, http.HandlerFunc(w.serve), names...)
	return w
}

// hostAddress is an address of this machine that an endpoint may have: not a loopback one.
func hostAddress(t testing.TB) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	t.Skip("this machine has loopback addresses only, which an endpoint may not have")
	return ""
}

func serveHook(t testing.TB, h http.Handler, names ...string) (identity, string) {
	t.Helper()
	return serveHookOn(t, "127.0.0.1", h, names...)
}

func serveHookOn(t testing.TB, address string, h http.Handler, names ...string) (identity, string) {
	t.Helper()
	id := newIdentity(t, names...)
	server := httptest.NewUnstartedServer(h)
	server.Listener.Close()
	var err error
	if server.Listener, err = net.Listen("tcp", net.JoinHostPort(address, "0")); err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{id.cert}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // that a client does not trust it is what some tests want
	server.StartTLS()
	t.Cleanup(server.Close)
	return id, server.URL
}

func (w *webhook) serve(rw http.ResponseWriter, req *http.Request) {
	var review reviewv1.AdmissionReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(rw, "no review", http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.asked = append(w.asked, *review.Request)
	w.mu.Unlock()
	answer := &reviewv1.AdmissionResponse{Allowed: true}
	if w.answer != nil {
		answer = w.answer(review.Request)
	}
	answer.UID = review.Request.UID
	writeReview(rw, answer)
}

func writeReview(w io.Writer, answer *reviewv1.AdmissionResponse) {
	_ = json.NewEncoder(w).Encode(reviewv1.AdmissionReview{ // the client went away: its test says why
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Response: answer})
}

// requests are those that the webhook was asked about since the last call.
func (w *webhook) requests() []reviewv1.AdmissionRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

func (w *webhook) client() admissionv1.WebhookClientConfig {
	return admissionv1.WebhookClientConfig{URL: &w.url, CABundle: w.ca}
}

func denied(why string) *reviewv1.AdmissionResponse {
	return &reviewv1.AdmissionResponse{Result: &metav1.Status{Message: why, Code: http.StatusForbidden}}
}

// patched allows with a JSON patch.
func patched(patch string) *reviewv1.AdmissionResponse {
	return &reviewv1.AdmissionResponse{Allowed: true, Patch: []byte(patch),
		PatchType: ptr.To(reviewv1.PatchTypeJSONPatch)}
}

func rule(resource string, ops ...admissionv1.OperationType) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{Operations: ops, Rule: admissionv1.Rule{APIGroups: []string{"*"},
		APIVersions: []string{"*"}, Resources: []string{resource}}}
}

// sampleRule is about nothing that is served.
func sampleRule() admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{"*"},
		Rule: admissionv1.Rule{APIGroups: []string{"none.example.com"}, APIVersions: []string{"v1"},
			Resources: []string{"things"}}}
}

func sampleHook(url string) admissionv1.MutatingWebhook {
	return hook("sample.example.com", admissionv1.WebhookClientConfig{URL: &url}, sampleRule())
}

// hook is a mutating webhook with just what it must have.
func hook(name string, client admissionv1.WebhookClientConfig,
	rules ...admissionv1.RuleWithOperations) admissionv1.MutatingWebhook {
	return admissionv1.MutatingWebhook{Name: name, ClientConfig: client, Rules: rules,
		SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}}
}

func mutatingConfig(name string, hooks ...admissionv1.MutatingWebhook) *admissionv1.MutatingWebhookConfiguration {
	return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: hooks}
}

// validatingConfig takes mutating webhooks so that tests can make both of one.
func validatingConfig(name string, hooks ...admissionv1.MutatingWebhook) *admissionv1.ValidatingWebhookConfiguration {
	c := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, w := range hooks {
		c.Webhooks = append(c.Webhooks, admissionv1.ValidatingWebhook{Name: w.Name, ClientConfig: w.ClientConfig,
			Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
			TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions,
			MatchConditions: w.MatchConditions})
	}
	return c
}

// only selects one namespace.
func only(ns string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}}
}

// mutate installs mutating webhooks for one namespace until the test ends, and returns when they are in effect.
func mutate(t *testing.T, c kubernetes.Interface, ns string, hooks ...admissionv1.MutatingWebhook) {
	t.Helper()
	for i := range hooks {
		hooks[i].NamespaceSelector = only(ns)
	}
	client := c.AdmissionregistrationV1().MutatingWebhookConfigurations()
	marker := newWebhook(t, func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse { return denied("marked") })
	config := mutatingConfig(ns, append(hooks, markerHook(marker, ns, mutatingMarker))...)
	if _, err := client.Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.Background(), ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	inEffect(t, c, ns, mutatingMarker)
}

// validate is mutate for validating webhooks.
func validate(t *testing.T, c kubernetes.Interface, ns string, hooks ...admissionv1.MutatingWebhook) {
	t.Helper()
	for i := range hooks {
		hooks[i].NamespaceSelector = only(ns)
	}
	client := c.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	marker := newWebhook(t, func(*reviewv1.AdmissionRequest) *reviewv1.AdmissionResponse { return denied("marked") })
	config := validatingConfig(ns, append(hooks, markerHook(marker, ns, validatingMarker))...)
	if _, err := client.Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.Background(), ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	inEffect(t, c, ns, validatingMarker)
}

// markerHook refuses what is labelled as a marker. The webhooks of a configuration take effect together.
func markerHook(w *webhook, ns, label string) admissionv1.MutatingWebhook {
	marker := hook("marker.example.com", w.client(), rule("serviceaccounts", admissionv1.Create))
	marker.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label: ns}}
	return marker
}

// Labels of markers: one rule that is in effect says nothing of another.
const (
	mutatingMarker   = "mutating-marker"
	validatingMarker = "validating-marker"
	policyMarker     = "policy-marker"
)

// inEffect waits until markers are refused: a rule takes effect when the server's informer has heard of it, of which
// clients hear nothing.
func inEffect(t *testing.T, c kubernetes.Interface, ns, label string) {
	t.Helper()
	untilMarked(t, c, ns, label, true)
}

// untilMarked waits until markers are refused, or are no longer.
func untilMarked(t *testing.T, c kubernetes.Interface, ns, label string, want bool) {
	t.Helper()
	marker := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "marker",
		Labels: map[string]string{label: ns}}}
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			_, err := c.CoreV1().ServiceAccounts(ns).Create(ctx, marker,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && !strings.Contains(err.Error(), "marked") {
				return false, err
			}
			return (err != nil) == want, nil
		})
	if err != nil {
		t.Fatalf("in effect is still %v: %v", !want, err)
	}
}

// policyMatch is about one namespace.
func policyMatch(ns string, rules ...admissionv1.RuleWithOperations) *admissionv1.MatchResources {
	m := &admissionv1.MatchResources{}
	if ns != "" {
		m.NamespaceSelector = only(ns)
	}
	for _, r := range rules {
		m.ResourceRules = append(m.ResourceRules, admissionv1.NamedRuleWithOperations{RuleWithOperations: r})
	}
	return m
}

func validatingPolicy(name string, about admissionv1.RuleWithOperations,
	expression string) *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: policyMatch("", about), Validations: []admissionv1.Validation{{Expression: expression}}}}
}

func bindValidating(name, policy string) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
}

func mutatingPolicy(name string, about admissionv1.RuleWithOperations,
	mutations ...admissionv1.Mutation) *admissionv1.MutatingAdmissionPolicy {
	return &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: policyMatch("", about), Mutations: mutations}}
}

func bindMutating(name, policy string) *admissionv1.MutatingAdmissionPolicyBinding {
	return &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy}}
}

func applied(expression string) admissionv1.Mutation {
	return admissionv1.Mutation{PatchType: admissionv1.PatchTypeApplyConfiguration,
		ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: expression}}
}

func jsonPatched(expression string) admissionv1.Mutation {
	return admissionv1.Mutation{PatchType: admissionv1.PatchTypeJSONPatch,
		JSONPatch: &admissionv1.JSONPatch{Expression: expression}}
}

func addLabel(key, value string) admissionv1.Mutation {
	return applied(`Object{metadata: Object.metadata{labels: {"` + key + `": "` + value + `"}}}`)
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// try creates a config map of a new name.
func try(t *testing.T, c kubernetes.Interface, ns string) (*corev1.ConfigMap, error) {
	t.Helper()
	return c.CoreV1().ConfigMaps(ns).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}, metav1.CreateOptions{})
}

func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInternalError(err) || apierrors.IsInvalid(err)
}

// object decodes what a review shows.
func object[T any](t *testing.T, raw []byte) *T {
	t.Helper()
	out := new(T)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return out
}

// hookWarnings collects what the server warns a client of.
type hookWarnings struct {
	mu  sync.Mutex
	all []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *hookWarnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func (w *hookWarnings) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}
