// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/features"
)

// TestRightsGoWhoeverListensFirst proves that rights end with their binding, before the client has its answer, and that others
// hear of it too, in whichever order they began to listen: nobody puts himself in another's place.
func TestRightsGoWhoeverListensFirst(t *testing.T) {
	for name, listenerFirst := range map[string]bool{"the other first": true, "rights first": false} {
		t.Run(name, func(t *testing.T) {
			st := registry.Stores{}
			for _, k := range kinds.All(&features.Gates{}) {
				store := &genericregistry.Store{}
				st[k.Plural] = &registry.REST{Store: store, Kind: k, OnWrite: onwrite.Of(store)}
			}
			heard := 0
			listen := func() {
				st["rolebindings"].OnWrite.Add(onwrite.Calls{Deleted: func(runtime.Object) { heard++ }})
			}
			if listenerFirst {
				listen()
			}
			p := newPolicy(st)
			if !listenerFirst {
				listen()
			}

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
			if heard != 1 {
				t.Errorf("another listener has heard %d times that the binding has gone", heard)
			}
		})
	}
}
