// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/api"
)

// A deleted namespace terminates: it takes no new content, keeps its old, and goes when its finalizer is done.
func TestNamespaceFinalization(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	got, err := c.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Status.Phase != corev1.NamespaceActive || len(got.Spec.Finalizers) != 1 ||
		got.Labels["kubernetes.io/metadata.name"] != ns {
		t.Errorf("new namespace: %+v", got)
	}
	if err := c.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err = c.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.DeletionTimestamp == nil || got.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("deleted namespace: %+v", got)
	}
	_, err = c.CoreV1().Pods(ns).Create(t.Context(), pod("late"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("a pod in a terminating namespace: %v", err)
	}
	if _, err := c.CoreV1().ServiceAccounts(ns).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("old content: %v", err)
	}
	if err := c.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Errorf("second delete: %v", err)
	}
	got.Spec.Finalizers = nil
	if _, err := c.CoreV1().Namespaces().Finalize(t.Context(), got, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after finalize: %v", err)
	}
}

// Finalizers change through finalize alone, and a namespace's own metadata finalizers hold it too.
func TestNamespaceFinalizersAreProtected(t *testing.T) {
	c := client(t)
	namespaces := c.CoreV1().Namespaces()
	ns, err := namespaces.Get(t.Context(), namespace(t, c), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns.Spec.Finalizers = nil
	ns.Finalizers = []string{"example.com/hold"}
	ns, err = namespaces.Update(t.Context(), ns, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(ns.Spec.Finalizers) != 1 {
		t.Error("an ordinary update removed the finalizer")
	}
	if err := namespaces.Delete(t.Context(), ns.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if ns, err = namespaces.Get(t.Context(), ns.Name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	ns.Spec.Finalizers = nil
	if ns, err = namespaces.Finalize(t.Context(), ns, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if ns, err = namespaces.Get(t.Context(), ns.Name, metav1.GetOptions{}); err != nil {
		t.Fatalf("it went although it is held: %v", err)
	}
	ns.Finalizers = nil
	if _, err = namespaces.Update(t.Context(), ns, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := namespaces.Get(t.Context(), ns.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the last finalizer: %v", err)
	}
}

// PL-12: what every cluster has is there when the server is ready.
func TestBootstrap(t *testing.T) {
	c := client(t)
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		if _, err := c.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	svc, err := c.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if svc.Spec.ClusterIP != "10.96.0.1" || svc.Spec.Ports[0].TargetPort.IntValue() != shared.srv.Port() {
		t.Errorf("service kubernetes: %+v", svc.Spec)
	}
	if _, err := c.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	wantEndpoint(t, c, shared.srv)
}

// wantEndpoint wants service kubernetes to have the endpoint that the server advertises, in both forms.
func wantEndpoint(t *testing.T, c kubernetes.Interface, s *api.Server) {
	t.Helper()
	at := s.Advertised()
	if !at.IsValid() {
		t.Skip("this machine has no address but loopback")
	}
	ends, err := c.CoreV1().Endpoints("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slice, err := c.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{
		fmt.Sprintf("%s:%d", ends.Subsets[0].Addresses[0].IP, ends.Subsets[0].Ports[0].Port),
		fmt.Sprintf("%s:%d", slice.Endpoints[0].Addresses[0], *slice.Ports[0].Port),
	} {
		if want := at.String(); got != want {
			t.Errorf("service kubernetes has endpoint %s, want %s", got, want)
		}
	}
	if ends.Labels[discoveryv1.LabelSkipMirror] != "true" {
		t.Errorf("its Endpoints would be mirrored to a second slice: labels %v", ends.Labels)
	}
}
