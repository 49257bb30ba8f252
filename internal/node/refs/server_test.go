// SPDX-License-Identifier: Apache-2.0

package refs_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/node/refs"
	"github.com/wherryproject/wherry/internal/store"
)

// serve brings up an API server of our own, to be ended by stop.
func serve(t *testing.T) (client kubernetes.Interface, stop func()) {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	log := slog.New(slog.DiscardHandler)
	etcd, err := store.Start(ctx, store.Config{Dir: filepath.Join(dir, "etcd"), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := api.New(ctx, api.Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{etcd.Endpoint()}, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	select {
	case <-srv.Ready():
	case err := <-done:
		t.Fatal(err)
	}
	config := rest.CopyConfig(srv.Loopback())
	config.QPS = -1
	client, err = kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var stopped bool
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := etcd.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return client, stop
}

// TestServer proves PL-05 and SC-20 against the real API server: first answers are quick, changes and deletions arrive, a real
// token is had and kept, and what was known outlives the server.
func TestServer(t *testing.T) {
	client, stop := serve(t)
	const ns = "refs"
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	core := client.CoreV1()
	must(core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}))
	must(core.ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}))
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"k": "1"}}
	must(core.ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "x", EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "later"}}}}}}}}
	pod, err := core.Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	changed := make(chan types.UID, 100)
	s := refs.New(refs.Config{Client: client, Changed: func(uid types.UID) { changed <- uid }})
	defer s.Close()
	s.Register(pod)
	begin := time.Now()
	if got, err := s.ConfigMap(t.Context(), ns, "settings"); err != nil || got.Data["k"] != "1" {
		t.Fatal(got, err)
	}
	if _, err := s.Secret(t.Context(), ns, "later"); !apierrors.IsNotFound(err) || err.Error() != `secret "later" not found` {
		t.Fatal(err)
	}
	t.Logf("both known after %v", time.Since(begin).Round(100*time.Microsecond))

	// until waits for the callback as often as it takes for the state to be there.
	until := func(what string, there func() bool) {
		t.Helper()
		for !there() {
			select {
			case uid := <-changed:
				if uid != pod.UID {
					t.Error("told of", uid)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("never seen:", what)
			}
		}
	}
	must(core.Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "later"}}, metav1.CreateOptions{}))
	until("the new secret", func() bool { _, err := s.Secret(t.Context(), ns, "later"); return err == nil })
	cm.Data["k"] = "2"
	must(core.ConfigMaps(ns).Update(t.Context(), cm, metav1.UpdateOptions{}))
	value := func() string {
		got, err := s.ConfigMap(t.Context(), ns, "settings")
		if err != nil {
			return err.Error()
		}
		return got.Data["k"]
	}
	until("the update", func() bool { return value() == "2" })
	if err := core.ConfigMaps(ns).Delete(t.Context(), "settings", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until("the deletion", func() bool { return value() == `configmap "settings" not found` })
	must(core.ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}))
	until("the new one of the name", func() bool { return value() == "2" })

	token := func() string {
		got, expires, err := s.ServiceAccountToken(t.Context(), pod, &corev1.ServiceAccountTokenProjection{Path: "token"})
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Until(expires); left < 50*time.Minute || left > 70*time.Minute || strings.Count(got, ".") != 2 {
			t.Errorf("token of %v: %s", left, got)
		}
		return got
	}
	first := token()
	stop()
	if value() != "2" || token() != first {
		t.Error("what was known did not outlive the server")
	}
}
