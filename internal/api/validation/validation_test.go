// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// row spoils a good object (do), and says what must be found; an empty path means nothing.
type row[T any] struct {
	name string
	do   func(*T)
	path string
	word string
}

func check[T any](t *testing.T, good func() *T, validate func(*T) field.ErrorList, rows []row[T]) {
	t.Helper()
	wantError(t, validate(good()), "", "")
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			obj := good()
			r.do(obj)
			wantError(t, validate(obj), r.path, r.word)
		})
	}
}

// checkUpdate compares with the good object, spoiled by before if that is there.
func checkUpdate[T any](t *testing.T, good func() *T, validate func(now, was *T) field.ErrorList, before func(*T), rows []row[T]) {
	t.Helper()
	for _, r := range rows {
		t.Run("update "+r.name, func(t *testing.T) {
			was, now := good(), good()
			if before != nil {
				before(was)
				before(now)
			}
			r.do(now)
			wantError(t, validate(now, was), r.path, r.word)
		})
	}
}

func wantError(t *testing.T, got field.ErrorList, path, word string) {
	t.Helper()
	if path == "" && word == "" {
		for _, e := range got {
			t.Errorf("unexpected: %v", e)
		}
		return
	}
	for _, e := range got {
		if e.Field == path && strings.Contains(e.Error(), word) {
			return
		}
	}
	t.Errorf("want an error at %q with %q, got %v", path, word, got)
}

func object(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "default", ResourceVersion: "1"}
}

func TestConfigMap(t *testing.T) {
	good := func() *corev1.ConfigMap {
		c := &corev1.ConfigMap{ObjectMeta: object("c"), Data: map[string]string{"a.txt": "x"}, BinaryData: map[string][]byte{"b": {1}}}
		SetDefaultsConfigMap(c)
		return c
	}
	type cm = corev1.ConfigMap
	check(t, good, ValidateConfigMap, []row[cm]{
		{"name", func(c *cm) { c.Name = "A" }, "metadata.name", "RFC 1123"},
		{"finalizer", func(c *cm) { c.Finalizers = []string{"x"} }, "metadata.finalizers[0]", "neither a standard finalizer name"},
		{"key", func(c *cm) { c.Data["a b"] = "" }, "data[a b]", "a valid config key"},
		{"key up", func(c *cm) { c.Data[".."] = "" }, "data[..]", ""},
		{"binary key", func(c *cm) { c.BinaryData["a/b"] = nil }, "binaryData[a/b]", ""},
		{"key twice", func(c *cm) { c.Data["b"] = "" }, "data[b]", "duplicate of key present in binaryData"},
		{"1 MiB", func(c *cm) { c.Data = map[string]string{"a": strings.Repeat("x", maxData-1)} }, "", ""},
		{"more than 1 MiB", func(c *cm) { c.Data["a"] = strings.Repeat("x", maxData) }, "[]", "1048576"},
	})
	checkUpdate(t, good, ValidateConfigMapUpdate, nil, []row[cm]{
		{"data", func(c *cm) { c.Data["x"] = "" }, "", ""},
		{"name", func(c *cm) { c.Name = "d" }, "metadata.name", "immutable"},
		{"bad key", func(c *cm) { c.Data["a b"] = "" }, "data[a b]", ""},
	})
	checkUpdate(t, good, ValidateConfigMapUpdate, func(c *cm) { c.Immutable = new(true) }, []row[cm]{
		{"immutable data", func(c *cm) { c.Data["a.txt"] = "y" }, "data", "field is immutable when `immutable` is set"},
		{"immutable binary data", func(c *cm) { c.BinaryData = nil }, "binaryData", "field is immutable"},
		{"immutable undone", func(c *cm) { c.Immutable = nil }, "immutable", "field is immutable"},
		{"immutable labels", func(c *cm) { c.Labels = map[string]string{"a": "b"} }, "", ""},
	})
}

func TestSecret(t *testing.T) {
	type se = corev1.Secret
	good := func() *se {
		s := &se{ObjectMeta: object("s"), StringData: map[string]string{"a": "x"}}
		SetDefaultsSecret(s)
		return s
	}
	if s := good(); s.Type != corev1.SecretTypeOpaque || string(s.Data["a"]) != "x" || s.StringData != nil {
		t.Errorf("defaults: %+v", s)
	}
	typed := func(kind corev1.SecretType, data map[string][]byte) func(*se) {
		return func(s *se) { s.Type, s.Data = kind, data }
	}
	check(t, good, ValidateSecret, []row[se]{
		{"key", func(s *se) { s.Data["a b"] = nil }, "data[a b]", ""},
		{"size", func(s *se) { s.Data["a"] = make([]byte, maxData+1) }, "data", "1048576"},
		{"no type", func(s *se) { s.Type = "" }, "type", "Required"},
		{"own type", func(s *se) { s.Type = "example.com/mine" }, "", ""},
		{"token", typed(corev1.SecretTypeServiceAccountToken, nil), "metadata.annotations[kubernetes.io/service-account.name]", "Required"},
		{"dockercfg", typed(corev1.SecretTypeDockercfg, nil), "data[.dockercfg]", "Required"},
		{"docker config", typed(corev1.SecretTypeDockerConfigJson, map[string][]byte{".dockerconfigjson": []byte("x")}), "data[.dockerconfigjson]", "<secret contents redacted>"},
		{"good docker config", typed(corev1.SecretTypeDockerConfigJson, map[string][]byte{".dockerconfigjson": []byte("{}")}), "", ""},
		{"basic auth", typed(corev1.SecretTypeBasicAuth, nil), "data[username]", "Required"},
		{"ssh", typed(corev1.SecretTypeSSHAuth, nil), "data[ssh-privatekey]", "Required"},
		{"tls", typed(corev1.SecretTypeTLS, map[string][]byte{"tls.crt": nil}), "data[tls.key]", "Required"},
	})
	checkUpdate(t, good, ValidateSecretUpdate, nil, []row[se]{
		{"data", func(s *se) { s.Data["a"] = nil }, "", ""},
		{"type", func(s *se) { s.Type = "x" }, "type", "immutable"},
	})
	checkUpdate(t, good, ValidateSecretUpdate, func(s *se) { s.Immutable = new(true) }, []row[se]{
		{"immutable data", func(s *se) { s.Data["a"] = nil }, "data", "field is immutable when `immutable` is set"},
		{"immutable undone", func(s *se) { s.Immutable = new(false) }, "immutable", ""},
	})
}

func TestNamespace(t *testing.T) {
	type ns = corev1.Namespace
	good := func() *ns {
		n := &ns{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"}}
		SetDefaultsNamespace(n)
		PrepareNamespace(n)
		return n
	}
	if n := good(); n.Labels["kubernetes.io/metadata.name"] != "n" || n.Spec.Finalizers[0] != "kubernetes" || n.Status.Phase != "Active" {
		t.Errorf("defaults: %+v", n)
	}
	check(t, good, ValidateNamespace, []row[ns]{
		{"name with dot", func(n *ns) { n.Name = "a.b" }, "metadata.name", ""},
		{"in a namespace", func(n *ns) { n.Namespace = "x" }, "metadata.namespace", "not allowed"},
		{"finalizer", func(n *ns) { n.Spec.Finalizers = []corev1.FinalizerName{"x"} }, "spec.finalizers[0]", "neither a standard"},
	})
	checkUpdate(t, good, ValidateNamespaceUpdate, nil, []row[ns]{{"labels", func(n *ns) { n.Labels["a"] = "b" }, "", ""}})
	checkUpdate(t, good, ValidateNamespaceFinalizeUpdate, nil, []row[ns]{
		{"done", func(n *ns) { n.Spec.Finalizers = nil }, "", ""},
		{"unknown", func(n *ns) { n.Spec.Finalizers = []corev1.FinalizerName{"x"} }, "spec.finalizers[0]", ""},
	})
	checkUpdate(t, good, ValidateNamespaceStatusUpdate, nil, []row[ns]{
		{"terminating", func(n *ns) { n.Status.Phase = "Terminating" }, "status.phase", "may only be 'Active'"},
	})
	checkUpdate(t, good, ValidateNamespaceStatusUpdate, func(n *ns) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, []row[ns]{
		{"active", func(n *ns) {}, "status.phase", "may only be 'Terminating'"},
		{"terminating", func(n *ns) { n.Status.Phase = "Terminating" }, "", ""},
	})
}

func TestServiceAccountAndLease(t *testing.T) {
	type sa = corev1.ServiceAccount
	goodAccount := func() *sa { return &sa{ObjectMeta: object("default")} }
	check(t, goodAccount, ValidateServiceAccount, []row[sa]{{"name", func(s *sa) { s.Name = "a_b" }, "metadata.name", ""}})
	checkUpdate(t, goodAccount, ValidateServiceAccountUpdate, nil, []row[sa]{{"uid", func(s *sa) { s.UID = "x" }, "metadata.uid", "immutable"}})

	type le = coordinationv1.Lease
	good := func() *le {
		return &le{ObjectMeta: object("l"), Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(40)), LeaseTransitions: new(int32(0))}}
	}
	check(t, good, ValidateLease, []row[le]{
		{"duration", func(l *le) { l.Spec.LeaseDurationSeconds = new(int32(0)) }, "spec.leaseDurationSeconds", "must be greater than 0"},
		{"transitions", func(l *le) { l.Spec.LeaseTransitions = new(int32(-1)) }, "spec.leaseTransitions", ""},
		{"strategy", func(l *le) { l.Spec.Strategy = new(coordinationv1.CoordinatedLeaseStrategy("x")) }, "spec.strategy", "OldestEmulationVersion"},
		{"preferred holder", func(l *le) { l.Spec.PreferredHolder = new("a") }, "spec.preferredHolder", "strategy"},
	})
	checkUpdate(t, good, ValidateLeaseUpdate, nil, []row[le]{
		{"renewed", func(l *le) { l.Spec.RenewTime = &metav1.MicroTime{} }, "", ""},
		{"duration", func(l *le) { l.Spec.LeaseDurationSeconds = new(int32(-1)) }, "spec.leaseDurationSeconds", ""},
	})
}
