// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/api/admission"
)

// giveRole binds a ClusterRole in a namespace.
func giveRole(t *testing.T, c kubernetes.Interface, ns, role string) {
	t.Helper()
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: role + "-"}, Subjects: userSubject("somebody"),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
	if _, err := c.RbacV1().RoleBindings(ns).Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestBindingsWarn proves RS-11: who gives a role that amounts to root on the node in a namespace without a level is
// told so, and nobody else. ATTACK A1.
func TestBindingsWarn(t *testing.T) {
	config, heard := hearing(adminConfig(t))
	c := clientOf(t, config)
	w := world{c: c, ns: namespace(t, c)}
	warned := func(role string) string {
		t.Helper()
		heard.take()
		giveRole(t, c, w.ns, role)
		return heard.take()
	}
	for _, role := range []string{"edit", "admin", "debug-privileged", "cluster-admin"} {
		if said := warned(role); !strings.Contains(said, `namespace "`+w.ns+
			`" has no Pod Security level, so ClusterRole "`+role+`" lets its subjects become root on the node`) ||
			!strings.Contains(said, "kubectl label namespace "+w.ns+" pod-security.kubernetes.io/enforce=baseline") {
			t.Errorf("%s: warned of %q", role, said)
		}
	}
	for _, role := range []string{"view", "debug"} {
		if said := warned(role); said != "" {
			t.Errorf("%s: warned of %q", role, said)
		}
	}
	if said := widened(t, c, heard, w.ns, "deploy"); !strings.Contains(said,
		`Role "deploy" now lets those it is bound to become root`) {
		t.Errorf("a role that becomes wider: warned of %q", said)
	}
	for _, level := range []string{"privileged", "baseline", "restricted"} { // somebody has decided
		w.label(t, map[string]string{"pod-security.kubernetes.io/enforce": level})
		if said := warned("edit"); said != "" {
			t.Errorf("level %s: warned of %q", level, said)
		}
		if said := widened(t, c, heard, w.ns, "deploy-"+level); said != "" {
			t.Errorf("level %s: warned of %q", level, said)
		}
	}
}

// widened makes a role that reads Deployments into one that writes them, and returns what that warned of.
func widened(t *testing.T, c kubernetes.Interface, heard *warnings, ns, name string) string {
	t.Helper()
	rule := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}}
	role, err := c.RbacV1().Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	heard.take()
	role.Rules[0].Verbs = []string{"get", "create"}
	if _, err := c.RbacV1().Roles(ns).Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return heard.take()
}

// TestClusterBindingsWarn proves RS-11: so does who gives such a role everywhere, but not who makes an administrator.
func TestClusterBindingsWarn(t *testing.T) {
	config, heard := hearing(adminConfig(t))
	c := clientOf(t, config)
	for role, want := range map[string]string{"edit": `ClusterRole "edit" in all namespaces lets its subjects become root on the node with a privileged pod in kube-system`,
		"debug-privileged": `ClusterRole "debug-privileged" in all namespaces lets`, "view": "", "debug": "",
		"cluster-admin": ""} {
		heard.take()
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: role + "-"},
			Subjects: userSubject("somebody"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
				Name: role}}
		made, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(), b, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if said := heard.take(); (want == "") != (said == "") || !strings.Contains(said, want) {
			t.Errorf("%s: warned of %q", role, said)
		}
		if err := c.RbacV1().ClusterRoleBindings().Delete(t.Context(), made.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDefaultPodSecurity proves RS-11: --default-pod-security holds for namespaces that have no level, and not for
// kube-system. ATTACK A1.
func TestDefaultPodSecurity(t *testing.T) {
	config := api.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1", EtcdServers: []string{shared.etcd.Endpoint()},
		EtcdPrefix: "/default-level", Admission: admission.Options{DefaultPodSecurity: "baseline"}}
	s, stop := serve(t, config)
	defer stop()
	hears, heard := hearing(configOf(t, s))
	c := clientOf(t, hears)
	w := world{c: c, ns: namespace(t, c)}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := c.CoreV1().ServiceAccounts(metav1.NamespaceSystem).Create(t.Context(), account,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	create := func(ns string) error {
		p := pod("p")
		p.Spec.HostPID = true
		_, err := c.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	refusedFor(t, create(w.ns), `violates PodSecurity "baseline:latest": host namespaces (hostPID=true)`)
	fine(t, "in kube-system", create(metav1.NamespaceSystem))
	heard.take()
	giveRole(t, c, w.ns, "edit")
	if said := heard.take(); said != "" {
		t.Errorf("warned of %q, though the namespace has a level by default", said)
	}
	w.label(t, map[string]string{"pod-security.kubernetes.io/enforce": "privileged"})
	fine(t, "with a level of its own", create(w.ns))
}

// TestDefaultPodSecurityRefused proves RS-11: a level that is none, and two defaults, do not start a server that would
// let everything in.
func TestDefaultPodSecurityRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admission.yaml")
	if err := os.WriteFile(file, []byte(`
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: privileged}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, options := range map[string]admission.Options{
		`--default-pod-security "strict": choose one of privileged, baseline, restricted`: {DefaultPodSecurity: "strict"},
		"leave one of them out": {DefaultPodSecurity: "baseline", ConfigFile: file},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := api.New(ctx, api.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1",
			EtcdServers: []string{shared.etcd.Endpoint()}, EtcdPrefix: "/default-level-refused", Admission: options})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
