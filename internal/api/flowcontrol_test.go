// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
)

// eventually waits for a condition of the cluster by a watch of flow schemas, and asks again at each of its changes.
func eventually(t *testing.T, config *rest.Config, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := clientOf(t, config).FlowcontrolV1().FlowSchemas().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for !ok() {
		select {
		case <-w.ResultChan():
		case <-ctx.Done():
			t.Fatalf("not in time: %s", what)
		}
	}
}

// hang makes a request of a user that is being served until it is released: its body does not come.
func hang(t *testing.T, s *api.Server, config *rest.Config, user string) (release func()) {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"), tlsConfig)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn,
		"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nImpersonate-User: %s\r\nContent-Type: application/json\r\n"+
			"Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n", user)
	answer := make([]byte, 25)
	if _, err := io.ReadFull(conn, answer); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 100 ") {
		t.Fatalf("%q %v", answer, err)
	}
	return func() { conn.Close() }
}

// TestPriorityAndFairness proves that the objects every cluster has are there, that the server's own are mended and
// cannot be changed, that requests are sorted by them, and that a level which rejects lets nobody else wait.
func TestPriorityAndFairness(t *testing.T) {
	dir := t.TempDir()
	cfg := api.Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{shared.etcd.Endpoint()},
		EtcdPrefix: "/apf"}
	s, stop := serve(t, cfg)
	config := configOf(t, s)
	c := clientOf(t, config).FlowcontrolV1()
	want := len(bootstrap.MandatoryFlowSchemas) + len(bootstrap.SuggestedFlowSchemas)
	eventually(t, config, "all flow schemas, none of them dangling", func() bool {
		list, err := c.FlowSchemas().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != want {
			return false
		}
		for _, f := range list.Items {
			for _, cond := range f.Status.Conditions {
				if cond.Type == flowcontrolv1.FlowSchemaConditionDangling &&
					cond.Status != flowcontrolv1.ConditionFalse {
					return false
				}
			}
		}
		return true
	})
	levels, err := c.PriorityLevelConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(levels.Items) != len(bootstrap.MandatoryPriorityLevelConfigurations)+
		len(bootstrap.SuggestedPriorityLevelConfigurations) {
		t.Errorf("%v %v", levels, err)
	}
	t.Run("a jail", func(t *testing.T) {
		level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "jail"},
			Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
				Type: flowcontrolv1.PriorityLevelEnablementLimited,
				Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
					NominalConcurrencyShares: new(int32), BorrowingLimitPercent: new(int32),
					LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}}}}
		if _, err := c.PriorityLevelConfigurations().Create(t.Context(), level, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		all := []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"},
			Resources: []string{"*"}, Namespaces: []string{"*"}, ClusterScope: true}}
		schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "jail"},
			Spec: flowcontrolv1.FlowSchemaSpec{
				PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "jail"},
				MatchingPrecedence:         2, Rules: []flowcontrolv1.PolicyRulesWithSubjects{{ResourceRules: all,
					Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser,
						User: &flowcontrolv1.UserSubject{Name: "noisy"}}}}}}}
		schema, err := c.FlowSchemas().Create(t.Context(), schema, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := clientOf(t, config).RbacV1().ClusterRoleBindings().Create(t.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "noisy"},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects: []rbacv1.Subject{{Kind: "User", Name: "noisy"}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		noisy := rest.CopyConfig(config)
		noisy.Impersonate.UserName = "noisy"
		eventually(t, config, "requests of the schema", func() bool {
			resp, _ := ask(t, noisy, "GET", "/api/v1/namespaces", nil)
			return resp.Header.Get("X-Kubernetes-Pf-Flowschema-Uid") == string(schema.UID)
		})
		release := hang(t, s, config, "noisy") // one request of a jail is served
		if resp, said := ask(t, noisy, "GET", "/api/v1/namespaces",
			nil); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%d %s", resp.StatusCode, said)
		}
		if resp, said := ask(t, config, "GET", "/api/v1/namespaces", nil); resp.StatusCode != http.StatusOK ||
			resp.Header.Get("X-Kubernetes-Pf-Flowschema-Uid") == "" {
			t.Errorf("%d %s %v", resp.StatusCode, said, resp.Header)
		}
		release()
	})
	t.Run("the server's own", func(t *testing.T) {
		own, err := c.FlowSchemas().Get(t.Context(), "catch-all", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		own.Spec.MatchingPrecedence = 9999
		if _, err := c.FlowSchemas().Update(t.Context(), own, metav1.UpdateOptions{}); err == nil {
			t.Error("catch-all can be changed")
		}
		if err := c.FlowSchemas().Delete(t.Context(), "catch-all", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		low, err := c.PriorityLevelConfigurations().Get(t.Context(), "workload-low", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		low.Annotations[flowcontrolv1.AutoUpdateAnnotationKey] = "false"
		low.Spec.Limited.NominalConcurrencyShares = new(int32(77))
		if _, err := c.PriorityLevelConfigurations().Update(t.Context(), low, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	stop()
	s, _ = serve(t, cfg)
	config = configOf(t, s)
	c = clientOf(t, config).FlowcontrolV1()
	eventually(t, config, "catch-all is back", func() bool {
		_, err := c.FlowSchemas().Get(t.Context(), "catch-all", metav1.GetOptions{})
		return err == nil
	})
	if low, err := c.PriorityLevelConfigurations().Get(t.Context(), "workload-low", metav1.GetOptions{}); err != nil ||
		*low.Spec.Limited.NominalConcurrencyShares != 77 {
		t.Errorf("what an administrator took over was changed: %v %v", low, err)
	}
}
