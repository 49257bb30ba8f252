// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

// who asks for something only admins may do and reads its own name out of the refusal.
func who(t *testing.T, config *rest.Config) string {
	t.Helper()
	_, err := clientOf(t, config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err == nil {
		return "somebody who may"
	}
	_, after, ok := strings.Cut(err.Error(), `User "`)
	if !ok {
		return err.Error()
	}
	name, _, _ := strings.Cut(after, `"`)
	return name
}

func request(t *testing.T, c kubernetes.Interface, ns string,
	spec authenticationv1.TokenRequestSpec) (*authenticationv1.TokenRequest, error) {
	t.Helper()
	return c.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "default",
		&authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
}

// PL-05 A service account's token, bound to a pod, is what a projected volume holds; the server knows its bearer by it.
func TestServiceAccountTokens(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	p := createPod(t, c, ns, pod("p"))
	bound := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: p.UID}
	req, err := request(t, c, ns, authenticationv1.TokenRequestSpec{BoundObjectRef: bound,
		ExpirationSeconds: ptr.To[int64](3607)})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(req.Status.ExpirationTimestamp.Time); left < 3500*time.Second || left > 3607*time.Second {
		t.Errorf("expires in %v", left)
	}
	if got, want := who(t, bearer(t, req.Status.Token)), "system:serviceaccount:"+ns+":default"; got != want {
		t.Errorf("the server knows the bearer as %q, want %q", got, want)
	}
	if _, err := clientOf(t, bearer(t, req.Status.Token)).Discovery().ServerVersion(); err != nil {
		t.Errorf("an account may not ask for the version: %v", err)
	}

	t.Run("another audience is not for this server", func(t *testing.T) {
		req, err := request(t, c, ns, authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}})
		if err != nil {
			t.Fatal(err)
		}
		if _,
			err := clientOf(t,
			bearer(t, req.Status.Token)).Discovery().ServerVersion(); !apierrors.IsUnauthorized(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a changed token is refused", func(t *testing.T) {
		parts := strings.Split(req.Status.Token, ".")
		parts[2] = strings.Repeat("A", len(parts[2]))
		if _, err := clientOf(t, bearer(t, strings.Join(parts,
			"."))).Discovery().ServerVersion(); !apierrors.IsUnauthorized(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("it dies with its pod", func(t *testing.T) {
		// not yet in the token cache
		fresh, err := request(t, c, ns, authenticationv1.TokenRequestSpec{BoundObjectRef: bound})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CoreV1().Pods(ns).Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _,
			err := clientOf(t,
			bearer(t, fresh.Status.Token)).Discovery().ServerVersion(); !apierrors.IsUnauthorized(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("it dies with its account", func(t *testing.T) {
		fresh, err := request(t, c, ns, authenticationv1.TokenRequestSpec{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CoreV1().ServiceAccounts(ns).Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CoreV1().ServiceAccounts(ns).Create(t.Context(),
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _,
			err := clientOf(t,
			bearer(t, fresh.Status.Token)).Discovery().ServerVersion(); !apierrors.IsUnauthorized(err) {
			t.Errorf("the token of an account of the same name before: %v", err)
		}
	})
}

// Identity: tokens that are bound to a Secret or a Node are refused once that is gone, or is another one of the same
// name.
func TestTokensBoundToSecretsAndNodes(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	if _, err := c.CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	if _, err := c.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CoreV1().Nodes().Delete(context.Background(), ns, metav1.DeleteOptions{}) })
	token := func(kind, name string) *rest.Config {
		t.Helper()
		req,
			err := request(t, c, ns,
			authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1",
				Kind: kind, Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		return bearer(t, req.Status.Token)
	}
	for kind, object := range map[string]struct {
		name           string
		remove, create func() error
	}{
		"Secret": {"s", func() error { return c.CoreV1().Secrets(ns).Delete(t.Context(), "s", metav1.DeleteOptions{}) },
			func() error {
				_, err := c.CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{})
				return err
			}},
		"Node": {ns, func() error { return c.CoreV1().Nodes().Delete(t.Context(), ns, metav1.DeleteOptions{}) },
			func() error {
				_, err := c.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
				return err
			}},
	} {
		t.Run(kind, func(t *testing.T) {
			// each not in the token cache
			good, gone, replaced := token(kind, object.name), token(kind, object.name), token(kind, object.name)
			if _, err := whoami(t, good); err != nil {
				t.Error(err)
			}
			if err := object.remove(); err != nil {
				t.Fatal(err)
			}
			if _, err := whoami(t, gone); !apierrors.IsUnauthorized(err) {
				t.Errorf("gone: %v", err)
			}
			if err := object.create(); err != nil {
				t.Fatal(err)
			}
			if _, err := whoami(t, replaced); !apierrors.IsUnauthorized(err) {
				t.Errorf("replaced: %v", err)
			}
		})
	}
}

func TestTokenRequestRefusals(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	other := pod("other")
	other.Spec.ServiceAccountName = "second"
	if _, err := c.CoreV1().ServiceAccounts(ns).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "second"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	createPod(t, c, ns, other)
	for name, test := range map[string]struct {
		spec authenticationv1.TokenRequestSpec
		is   func(error) bool
	}{
		"too short": {authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](10)},
			apierrors.IsInvalid},
		"too long": {authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](1 << 33)},
			apierrors.IsInvalid},
		"missing pod":          {authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "ghost"}}, apierrors.IsNotFound},
		"pod of other account": {authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "other"}}, apierrors.IsBadRequest},
		"kind nobody binds to": {authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Service", Name: "x"}}, apierrors.IsBadRequest},
	} {
		if _, err := request(t, c, ns, test.spec); !test.is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "ghost", &authenticationv1.TokenRequest{},
		metav1.CreateOptions{}); !apierrors.IsNotFound(err) ||
		!strings.Contains(err.Error(), `serviceaccounts "ghost"`) {
		t.Errorf("missing account: %v", err)
	}
}

// The ways to be known: certificate, admin token, token file; and what each may do.
func TestIdentities(t *testing.T) {
	token, err := os.ReadFile(filepath.Join(shared.dir, "pki", "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(shared.dir, "pki", "admin.token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("admin.token: %v, %v", info.Mode(), err)
	}
	nodeCert, nodeKey, err := shared.srv.CA().Client("system:node:n1", []string{"system:nodes"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	node := rest.AnonymousClientConfig(adminConfig(t))
	node.CertData, node.KeyData = nodeCert, nodeKey
	for name, config := range map[string]*rest.Config{
		"kubeconfig": adminConfig(t), "admin token": bearer(t, strings.TrimSpace(string(token))),
		"token file": bearer(t, "root-token"), "loopback": shared.srv.Loopback(),
	} {
		if got := who(t, config); got != "somebody who may" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := who(t, bearer(t, "jane-token")); got != "jane" {
		t.Errorf("jane is %q", got)
	}
	if got, err := whoami(t, node); err != nil || got.Username != "system:node:n1" {
		t.Errorf("the node is %q, %v", got.Username, err)
	}
	n := clientOf(t, node)
	if _, err := n.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "by-node"}},
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a node may create namespaces: %v", err)
	}
	if _, err := n.CoreV1().Pods("default").List(t.Context(),
		metav1.ListOptions{FieldSelector: "spec.nodeName=n1"}); err != nil {
		t.Errorf("a node may not list its pods: %v", err)
	}
	data, err := shared.srv.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := clientcmd.Load(data)
	if err != nil || kubeconfig.CurrentContext == "" {
		t.Errorf("kubeconfig: %v", err)
	}
}
