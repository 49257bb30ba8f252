// SPDX-License-Identifier: Apache-2.0

package api

import (
	"log/slog"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/features"
)

// TestRightsGoWhoeverListensFirst proves that rights end with their binding, before the client has its answer, and that quotas hear of
// it too, in whichever order the two began to listen: neither puts itself in the other's place.
func TestRightsGoWhoeverListensFirst(t *testing.T) {
	for name, quotasFirst := range map[string]bool{"quotas first": true, "rights first": false} {
		t.Run(name, func(t *testing.T) {
			schemes, err := registry.NewSchemes()
			if err != nil {
				t.Fatal(err)
			}
			st := registry.Stores{}
			for _, k := range kinds(&features.Gates{}) {
				store := &genericregistry.Store{}
				st[k.Plural] = &registry.REST{Store: store, Kind: k, OnWrite: onwrite.Of(store)}
			}
			var q *quotas
			var p *policy
			if quotasFirst {
				q, p = newQuotas(st, schemes, slog.New(slog.DiscardHandler)), newPolicy(st)
			} else {
				p = newPolicy(st)
				q = newQuotas(st, schemes, slog.New(slog.DiscardHandler))
			}
			defer q.close()
			q.ruled.add("ns")

			meta := metav1.ObjectMeta{Namespace: "ns", Name: "jane", UID: types.UID("1"), ResourceVersion: "1"}
			role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
			st["roles"].AfterCreate(role, &metav1.CreateOptions{})
			binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "jane"},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}}}
			st["rolebindings"].AfterCreate(binding, &metav1.CreateOptions{})
			if rules, _ := p.rules.RulesFor("jane", nil, "ns"); len(rules) != 1 {
				t.Fatalf("the binding gives %d rules", len(rules))
			}
			st["rolebindings"].AfterDelete(binding, &metav1.DeleteOptions{})
			if rules, _ := p.rules.RulesFor("jane", nil, "ns"); len(rules) != 0 {
				t.Errorf("without the binding jane has %v", rules)
			}
			if q.queue.Len() != 1 {
				t.Errorf("%d namespaces are counted anew, want the one that a binding has gone from", q.queue.Len())
			}
		})
	}
}
