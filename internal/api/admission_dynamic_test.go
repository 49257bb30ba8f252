// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/store"
)

// runServer runs a server on an etcd until the function it returns is called.
func runServer(t *testing.T, dir, etcd string) (*Server, kubernetes.Interface, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := New(ctx, Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{etcd}})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-ended:
		cancel()
		t.Fatalf("the server ended: %v", err)
	}
	client, err := kubernetes.NewForConfig(s.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	return s, client, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// made are the plug-ins that exist.
func (d *dynamic) made() (names []string) {
	for _, p := range d.plugins {
		p.once.Lock()
		if p.plugin != nil {
			names = append(names, p.name)
		}
		p.once.Unlock()
	}
	return names
}

// unreachable refuses new config maps, as nobody answers.
func unreachableHook() *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "unreachable"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "unreachable.example.com", SideEffects: ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig:            admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1")},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{"*"},
				Rule: admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"},
					Resources: []string{"*/*"}}}},
		}}}
}

// EC-21: a plug-in costs nothing before it has a rule; its first rule is in effect with the next request, and after a
// restart with the first one. A webhook about everything that nobody answers keeps a server neither from starting nor
// from being repaired.
func TestWebhooksAreMadeOnDemand(t *testing.T) {
	dir := t.TempDir()
	e, err := store.Start(t.Context(), store.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, c, stop := runServer(t, dir, e.Endpoint())
	try := func() error {
		_, err := c.CoreV1().ConfigMaps("default").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}, metav1.CreateOptions{})
		return err
	}
	hooks := c.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if err := try(); err != nil {
		t.Fatal(err)
	}
	if _, err := hooks.Create(t.Context(), unreachableHook(),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if err := try(); err != nil {
		t.Fatal(err)
	}
	if s.admission.dynamic.parts != nil || len(s.admission.dynamic.made()) > 0 {
		t.Errorf("made without any rule: %v", s.admission.dynamic.made())
	}
	if _, err := hooks.Create(t.Context(), unreachableHook(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := try(); !apierrors.IsInternalError(err) {
		t.Errorf("the first request after the first rule: %v", err)
	}
	if got := s.admission.dynamic.made(); !slices.Equal(got, []string{"ValidatingAdmissionWebhook"}) {
		t.Errorf("made %v", got)
	}
	stop()

	s, c, stop = runServer(t, dir, e.Endpoint())
	defer stop()
	if got := s.admission.dynamic.made(); !slices.Equal(got, []string{"ValidatingAdmissionWebhook"}) {
		t.Errorf("made before the server is ready: %v", got)
	}
	if err := try(); !apierrors.IsInternalError(err) {
		t.Errorf("the first request after a restart: %v", err)
	}
	if err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), "unreachable",
		metav1.DeleteOptions{}); err != nil {
		t.Errorf("the webhook cannot be removed: %v", err)
	}
}

// EC-21: a rule that another server on the same etcd has stored holds here too.
func TestWebhooksOfAnotherServer(t *testing.T) {
	here, there, stop := twoServers(t)
	defer stop()
	if _, err := there.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		unreachableHook(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	comesToHold(t, func(ctx context.Context) bool {
		_, err := here.CoreV1().ConfigMaps("default").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}, metav1.CreateOptions{})
		return apierrors.IsInternalError(err)
	})
}

// twoServers runs two servers on one etcd, until stop.
func twoServers(t *testing.T) (here, there kubernetes.Interface, stop func()) {
	t.Helper()
	dir := t.TempDir()
	e, err := store.Start(t.Context(), store.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	_, here, stopHere := runServer(t, dir, e.Endpoint())
	_, there, stopThere := runServer(t, dir, e.Endpoint())
	return here, there, func() {
		stopThere()
		stopHere()
		e.Close()
	}
}

// comesToHold waits until a rule of another server holds: the server hears of it by a watch of its own, of which
// clients hear nothing.
func comesToHold(t *testing.T, holds func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			return holds(ctx), nil
		})
	if err != nil {
		t.Errorf("the rule does not hold here: %v", err)
	}
}

// EC-21: when it cannot be known whether there are rules, requests are refused.
func TestWebhooksUnknownRefuse(t *testing.T) {
	dir := t.TempDir()
	e, err := store.Start(t.Context(), store.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, _, stop := runServer(t, dir, e.Endpoint())
	defer stop()
	d, err := newDynamic(s.stores, s.schemes, nil, s.log, s.connection)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	core := corev1.SchemeGroupVersion
	about := admission.NewAttributesRecord(&corev1.ConfigMap{}, nil, core.WithKind("ConfigMap"), "default", "c",
		core.WithResource("configmaps"), "", admission.Create, &metav1.CreateOptions{}, false, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // as if etcd did not answer
	objects := admission.NewObjectInterfacesFromScheme(s.schemes.Scheme)
	for _, p := range []admission.Interface{d.mutatingPolicies(), d.mutatingWebhooks()} {
		if err := p.(admission.MutationInterface).Admit(ctx, about, objects); !apierrors.IsInternalError(err) ||
			!strings.Contains(err.Error(), "read the mutating") {
			t.Errorf("got %v", err)
		}
	}
	for _, p := range []admission.Interface{d.validatingPolicies(), d.validatingWebhooks()} {
		if err := p.(admission.ValidationInterface).Validate(ctx, about, objects); !apierrors.IsInternalError(err) ||
			!strings.Contains(err.Error(), "read the validating") {
			t.Errorf("got %v", err)
		}
		if err := p.(admission.ValidationInterface).Validate(t.Context(), about, objects); err != nil {
			t.Errorf("without rules: %v", err)
		}
	}
}

// What would make the webhooks' plug-ins useless is an error when the server is made.
func TestWebhookConfigurationIsChecked(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\n"
	for _, tc := range []struct{ what, text, want string }{
		{"none", "", ""},
		{"empty", head, ""},
		{"another kind", "apiVersion: v1\nkind: Pod\n", "no kind"},
		{"unknown field", head + "x: y\n", "unknown field"},
		{"no such kubeconfig", head + "kubeConfigFile: /nowhere/kubeconfig\n", "/nowhere/kubeconfig"},
		{"static webhooks", head + "staticManifestsDir: /etc\n", "not supported"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			err := admissionConfig{"ValidatingAdmissionWebhook": []byte(tc.text)}.webhooks()
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
