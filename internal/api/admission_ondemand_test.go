// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/imagepolicy"
	"github.com/wherryproject/wherry/internal/store"
)

// runServer runs a server on an etcd until the function it returns is called.
func runServer(t *testing.T, dir, etcd string, log slog.Handler) (kubernetes.Interface, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := New(ctx, Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{etcd},
		Logger: slog.New(log)})
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
	return client, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// madePlugins hears which plug-ins of admission a server makes, from its log.
type madePlugins struct {
	slog.Handler
	mu    sync.Mutex
	names []string
}

// Enabled implements slog.Handler.
func (*madePlugins) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (m *madePlugins) WithAttrs([]slog.Attr) slog.Handler { return m }

// Handle implements slog.Handler.
func (m *madePlugins) Handle(_ context.Context, r slog.Record) error {
	if !strings.HasPrefix(r.Message, "made an admission plug-in") {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.names = append(m.names, a.Value.String())
		return true
	})
	return nil
}

func (m *madePlugins) take() (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	names, m.names = m.names, nil
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
	plugins := &madePlugins{Handler: slog.DiscardHandler}
	c, stop := runServer(t, dir, e.Endpoint(), plugins)
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
	if made := plugins.take(); len(made) > 0 {
		t.Errorf("made without any rule: %v", made)
	}
	if _, err := hooks.Create(t.Context(), unreachableHook(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := try(); !apierrors.IsInternalError(err) {
		t.Errorf("the first request after the first rule: %v", err)
	}
	if got := plugins.take(); !slices.Equal(got, []string{"ValidatingAdmissionWebhook"}) {
		t.Errorf("made %v", got)
	}
	stop()

	c, stop = runServer(t, dir, e.Endpoint(), plugins)
	defer stop()
	if got := plugins.take(); !slices.Equal(got, []string{"ValidatingAdmissionWebhook"}) {
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
	here, stopHere := runServer(t, dir, e.Endpoint(), slog.DiscardHandler)
	there, stopThere := runServer(t, dir, e.Endpoint(), slog.DiscardHandler)
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

// TestImagePoliciesOfAnotherServer proves EC-21: the first policy that another server on the same etcd has stored holds
// here too.
func TestImagePoliciesOfAnotherServer(t *testing.T) {
	here, there, stop := twoServers(t)
	defer stop()
	policy := `{"apiVersion":"` + imagepolicy.GroupVersion().String() +
		`","kind":"ImagePolicy","metadata":{"name":"none"},"spec":{"deny":["**"]}}`
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "a"}}}}
	if _, err := here.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatalf("without a policy: %v", err)
	}
	if err := there.Discovery().RESTClient().Post().AbsPath("/apis/"+imagepolicy.GroupVersion().String()+"/"+
		imagepolicy.Resource).
		SetHeader("Content-Type", "application/json").Body([]byte(policy)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	comesToHold(t, func(ctx context.Context) bool {
		_, err := here.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		return apierrors.IsForbidden(err)
	})
}
