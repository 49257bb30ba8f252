// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/audit"
)

func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAuditPolicyRefusesTheStart proves that no server runs under a policy it does not understand.
func TestAuditPolicyRefusesTheStart(t *testing.T) {
	o := audit.Defaults()
	o.PolicyFile = writeFile(t, "policy.yaml",
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- levels: Metadata\n")
	dir := t.TempDir()
	_, err := api.New(t.Context(), api.Config{DataDir: dir, BindAddress: "127.0.0.1",
		EtcdServers: []string{shared.etcd.Endpoint()}, EtcdPrefix: "/refused", Audit: &o})
	if err == nil || !strings.Contains(err.Error(), o.PolicyFile+": line 4: unknown field \"rules[0].levels\"") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "pki")); err == nil {
		t.Error("a refused start made keys")
	}
}

// TestAuditWithAPolicy proves that a policy of the user's holds; that even one which records everything records no
// secret; and that a server which stops has sent all of it to a webhook that takes events in batches.
func TestAuditWithAPolicy(t *testing.T) {
	var got sync.Map // AuditID + stage: event
	hook := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		var list auditv1.EventList
		if err := json.NewDecoder(req.Body).Decode(&list); err != nil {
			t.Error(err)
		}
		for _, e := range list.Items {
			got.Store(string(e.AuditID)+string(e.Stage), e)
		}
	}))
	defer hook.Close()
	ca := writeFile(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: hook.Certificate().Raw})))
	o := audit.Defaults()
	o.PolicyFile = writeFile(t, "policy.yaml",
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n"+
			"- level: None\n  verbs: [get, list, watch]\n- level: None\n  users: [\"system:apiserver\"]\n- level: RequestResponse\n")
	o.Webhook.ConfigFile = writeFile(t, "webhook.yaml",
		fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"+
			"clusters: [{name: a, cluster: {server: %s, certificate-authority: %s}}]\n", hook.URL, ca))
	o.Webhook.Batch.MaxBatchWait = time.Hour
	dir := t.TempDir()
	s, stop := serve(t, api.Config{DataDir: dir, BindAddress: "127.0.0.1",
		EtcdServers: []string{shared.etcd.Endpoint()}, EtcdPrefix: "/audited", Audit: &o})
	c := clientOf(t, configOf(t, s))
	const secret = "hunter2hunter2"
	if _, err := c.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "db"}, StringData: map[string]string{"password": secret}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Data: map[string]string{"key": "no secret"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := c.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	text, err := os.ReadFile(audit.DefaultPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	lines, bodies := 0, 0
	for line := range strings.Lines(string(text)) {
		var e auditv1.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines++
		if e.Level != auditv1.LevelRequestResponse || e.Verb == "get" {
			t.Errorf("against the policy: %s", line)
		}
		if e.RequestObject != nil && e.ResponseObject != nil {
			bodies++
		}
		if _, sent := got.Load(string(e.AuditID) + string(e.Stage)); !sent {
			t.Errorf("not sent before the server stopped: %s", line)
		}
	}
	if lines < 3 || bodies == 0 {
		t.Errorf("%d events, %d with bodies; the policy asks for all", lines, bodies)
	}
	encoded := "aHVudGVyMmh1bnRlcjI=" // base64 of the secret
	sent := ""
	got.Range(func(_, e any) bool { b, _ := json.Marshal(e); sent += string(b); return true })
	for where, all := range map[string]string{"log": string(text), "webhook": sent} {
		for _, hidden := range []string{secret, encoded, token.Status.Token} {
			if strings.Contains(all, hidden) {
				t.Errorf("%s has a secret", where)
			}
		}
		if !strings.Contains(all, "no secret") {
			t.Errorf("%s lacks the config map", where)
		}
	}
}

// BenchmarkAudit measures what being put on record costs pod creations: 32 clients, over TLS.
func BenchmarkAudit(b *testing.B) {
	for _, name := range []string{"off", "on"} {
		config := api.Config{DataDir: b.TempDir(), BindAddress: "127.0.0.1",
			EtcdServers: []string{shared.etcd.Endpoint()}, EtcdPrefix: "/bench-audit-" + name}
		if name == "on" {
			o := audit.Defaults()
			config.Audit = &o
		}
		s, stop := serve(b, config)
		c := clientOf(b, configOf(b, s))
		b.Run(name, func(b *testing.B) { createPods(b, c) })
		stop()
	}
}
