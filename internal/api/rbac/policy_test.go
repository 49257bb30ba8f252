// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/api/rbac"
)

func readPods() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
}

func ask(p *rbac.Policy, user string) rbac.Decision {
	return p.Decide(&rbac.Request{User: user, Verb: "get", Resource: "pods", Namespace: "ns"})
}

// Objects come from writes and from the watch, in any order: the newest version counts, and a deletion is not undone by older news.
func TestNewestCounts(t *testing.T) {
	role, binding := rbac.Key{Kind: rbac.Role, Namespace: "ns", Name: "r"}, rbac.Key{Kind: rbac.RoleBinding, Namespace: "ns", Name: "b"}
	ref, jane, joe := rbacv1.RoleRef{Kind: "Role", Name: "r"}, []rbacv1.Subject{{Kind: "User", Name: "jane"}}, []rbacv1.Subject{{Kind: "User", Name: "joe"}}
	type step struct {
		do        func(p *rbac.Policy)
		jane, joe bool
	}
	for name, steps := range map[string][]step{
		"binding before role": {
			{func(p *rbac.Policy) { p.PutBinding(binding, 5, ref, jane) }, false, false},
			{func(p *rbac.Policy) { p.PutRole(role, 6, readPods()) }, true, false},
		},
		"older news is passed over": {
			{func(p *rbac.Policy) { p.PutRole(role, 1, readPods()); p.PutBinding(binding, 5, ref, jane) }, true, false},
			{func(p *rbac.Policy) { p.PutBinding(binding, 4, ref, joe) }, true, false},
			{func(p *rbac.Policy) { p.PutBinding(binding, 6, ref, joe) }, false, true},
			{func(p *rbac.Policy) { p.PutRole(role, 1, nil) }, false, true},
			{func(p *rbac.Policy) { p.PutRole(role, 7, nil) }, false, false},
		},
		"a deletion stays one": {
			{func(p *rbac.Policy) { p.PutRole(role, 1, readPods()); p.PutBinding(binding, 5, ref, jane) }, true, false},
			{func(p *rbac.Policy) { p.Delete(binding, 8) }, false, false},
			{func(p *rbac.Policy) { p.PutBinding(binding, 6, ref, jane) }, false, false},
			{func(p *rbac.Policy) { p.Reached(rbac.RoleBinding, 7); p.PutBinding(binding, 7, ref, jane) }, false, false},
			{func(p *rbac.Policy) { p.PutBinding(binding, 9, ref, jane) }, true, false},
			{func(p *rbac.Policy) { p.Delete(binding, 8) }, true, false},
		},
		"a deletion that is heard of first": {
			{func(p *rbac.Policy) { p.PutRole(role, 1, readPods()); p.Delete(binding, 8) }, false, false},
			{func(p *rbac.Policy) { p.PutBinding(binding, 5, ref, jane) }, false, false},
		},
		"a whole list": {
			{func(p *rbac.Policy) {
				p.PutRole(role, 1, readPods())
				p.PutBinding(binding, 5, ref, jane)
				p.PutBinding(rbac.Key{Kind: rbac.RoleBinding, Namespace: "ns", Name: "c"}, 12, ref, joe)
			}, true, true},
			{func(p *rbac.Policy) { p.Keep(rbac.RoleBinding, map[rbac.Key]bool{binding: true}, 10) }, true, true}, // c was made after the list
			{func(p *rbac.Policy) { p.Keep(rbac.RoleBinding, map[rbac.Key]bool{}, 11) }, false, true},
			{func(p *rbac.Policy) { p.Keep(rbac.RoleBinding, map[rbac.Key]bool{}, 13) }, false, false},
			{func(p *rbac.Policy) { p.PutBinding(binding, 14, ref, jane) }, true, false}, // the role is still there
			{func(p *rbac.Policy) { p.Keep(rbac.Role, map[rbac.Key]bool{}, 20) }, false, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := rbac.NewPolicy()
			for i, s := range steps {
				s.do(p)
				if got := ask(p, "jane").Allowed; got != s.jane {
					t.Errorf("step %d: jane: %t", i, got)
				}
				if got := ask(p, "joe").Allowed; got != s.joe {
					t.Errorf("step %d: joe: %t", i, got)
				}
			}
		})
	}
}

// Reasons say by what, to whom; of missing roles, which.
func TestReasons(t *testing.T) {
	p := rbac.NewPolicy()
	p.PutRole(rbac.Key{Kind: rbac.ClusterRole, Name: "reader"}, 1, readPods())
	ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"}
	p.PutBinding(rbac.Key{Kind: rbac.ClusterRoleBinding, Name: "all"}, 1, ref, []rbacv1.Subject{{Kind: "Group", Name: "staff"}, {Kind: "User", Name: "jane"}})
	p.PutBinding(rbac.Key{Kind: rbac.RoleBinding, Namespace: "ns", Name: "robots"}, 1, ref, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "bot"}})
	p.PutBinding(rbac.Key{Kind: rbac.RoleBinding, Namespace: "ns", Name: "lost"}, 1, rbacv1.RoleRef{Kind: "Role", Name: "gone"}, []rbacv1.Subject{{Kind: "User", Name: "joe"}})
	p.PutBinding(rbac.Key{Kind: rbac.ClusterRoleBinding, Name: "lost"}, 1, rbacv1.RoleRef{Kind: "ClusterRole", Name: "gone"}, []rbacv1.Subject{{Kind: "User", Name: "joe"}})
	for user, want := range map[string]string{
		"jane":                         `RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to User "jane"`,
		"system:serviceaccount:ns:bot": `RBAC: allowed by RoleBinding "robots/ns" of ClusterRole "reader" to ServiceAccount "bot/ns"`,
		"joe":                          `RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "gone" not found]`,
		"eve":                          "",
	} {
		if got := ask(p, user).Reason; got != want {
			t.Errorf("%s: %q, want %q", user, got, want)
		}
	}
}

// Nobody grants more than he has. https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping
func TestMissing(t *testing.T) {
	rule := func(s string) rbacv1.PolicyRule { // groups|resources|verbs|names or urls||verbs
		f := strings.Split(s, "|")
		list := func(i int) []string {
			if i >= len(f) || f[i] == "" {
				return nil
			}
			return strings.Split(strings.ReplaceAll(f[i], "core", ""), ",")
		}
		if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "*||") {
			return rbacv1.PolicyRule{NonResourceURLs: list(0), Verbs: list(2)}
		}
		return rbacv1.PolicyRule{APIGroups: list(0), Resources: list(1), Verbs: list(2), ResourceNames: list(3)}
	}
	for _, test := range []struct {
		have, wanted string // rules apart by spaces
		missing      string // in words; "" if the one covers the other
	}{
		{"*|*|* *||*", "*|*|* *||*", ""},
		{"*|*|*", "core,apps|pods,deployments/scale|get,escalate", ""},
		{"core|pods|get,list", "core|pods|get", ""},
		{"core|pods|get", "core|pods|get,list", `{APIGroups:[""], Resources:["pods"], Verbs:["list"]}`},
		{"core|pods|get", "core|pods/log|get", `{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}`},
		{"core|pods|*", "core|pods|*", ""},
		{"core|pods|get,list,watch,create,update,patch,delete,deletecollection", "core|pods|*", `{APIGroups:[""], Resources:["pods"], Verbs:["*"]}`},
		{"core|*|get", "core|pods,pods/log|get", ""},
		{"core|pods,secrets|get", "core|*|get", `{APIGroups:[""], Resources:["*"], Verbs:["get"]}`},
		{"core|*/scale|get", "core|things/scale|get", ""},
		{"core|*/scale|get", "core|*/scale|get", ""},
		{"core|things/scale|get", "core|*/scale|get", `{APIGroups:[""], Resources:["*/scale"], Verbs:["get"]}`},
		{"core|pods|get apps|deployments|get", "core,apps|pods,deployments|get",
			`{APIGroups:[""], Resources:["deployments"], Verbs:["get"]}` + "\n" + `{APIGroups:["apps"], Resources:["pods"], Verbs:["get"]}`},
		{"core|pods|get|a", "core|pods|get|a", ""},
		{"core|pods|get|a", "core|pods|get|a,b", `{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}`},
		{"core|pods|get|a", "core|pods|get", `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`},
		{"core|pods|get", "core|pods|get|a,b", ""},
		{"core|pods|get|a core|pods|get|b", "core|pods|get|a,b", ""},
		{"core|pods|get core|pods|list", "core|pods|get,list", ""},
		{"/healthz/*||get", "/healthz/etcd||get", ""},
		{"/healthz/*||get", "/healthz||get", `{NonResourceURLs:["/healthz"], Verbs:["get"]}`},
		{"/healthz||get", "/healthz/*||get", `{NonResourceURLs:["/healthz/*"], Verbs:["get"]}`},
		{"*||get", "/metrics,/logs/*||get", ""},
		{"/metrics||get", "/metrics||get,post", `{NonResourceURLs:["/metrics"], Verbs:["post"]}`},
		{"core|pods|get", "/metrics||get", `{NonResourceURLs:["/metrics"], Verbs:["get"]}`},
		{"*||*", "core|pods|get", `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`},
		{"", "core|secrets|get,list,watch", `{APIGroups:[""], Resources:["secrets"], Verbs:["get", "list", "watch"]}`},
		{"", "", ""},
	} {
		rules := func(s string) (out []rbacv1.PolicyRule) {
			for _, f := range strings.Fields(s) {
				out = append(out, rule(f))
			}
			return out
		}
		if got := rbac.Words(rbac.Missing(rules(test.have), rules(test.wanted))); got != test.missing {
			t.Errorf("%q grants %q: missing %s, want %s", test.have, test.wanted, got, test.missing)
		}
	}
}

// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles
func TestAggregate(t *testing.T) {
	role := func(name string, labels map[string]string, resources ...string) *rbacv1.ClusterRole {
		r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		for _, resource := range resources {
			r.Rules = append(r.Rules, rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{resource}})
		}
		return r
	}
	selecting := func(labels ...map[string]string) *rbacv1.ClusterRole {
		r := role("monitoring", map[string]string{"x": "1"}, "own-rules-are-replaced")
		r.AggregationRule = &rbacv1.AggregationRule{}
		for _, l := range labels {
			r.AggregationRule.ClusterRoleSelectors = append(r.AggregationRule.ClusterRoleSelectors, metav1.LabelSelector{MatchLabels: l})
		}
		return r
	}
	x, y := map[string]string{"x": "1"}, map[string]string{"y": "1"}
	all := []*rbacv1.ClusterRole{role("b", x, "services", "pods"), role("a", x, "pods"), role("c", y, "nodes"), role("d", nil, "secrets")}
	for _, test := range []struct {
		role *rbacv1.ClusterRole
		want string
	}{
		{selecting(x), "pods services"},
		{selecting(y, x), "nodes pods services"},
		{selecting(map[string]string{"z": "1"}), ""},
		{role("plain", nil, "pods"), "pods"},
	} {
		rules, err := rbac.Aggregate(test.role, append(all, test.role))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rules {
			got = append(got, r.Resources...)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%v: %v, want %s", test.role.AggregationRule, got, test.want)
		}
	}
	bad := selecting(map[string]string{"not a label!": "1"})
	if _, err := rbac.Aggregate(bad, all); err == nil || !strings.Contains(err.Error(), "monitoring: aggregationRule.clusterRoleSelectors[0]") {
		t.Errorf("a selector that is none: %v", err)
	}
}

// The default roles keep the promises of the documentation between one another.
func TestDefaults(t *testing.T) {
	d := rbac.NewDefaults("api")
	rules := map[string][]rbacv1.PolicyRule{}
	for _, r := range d.ClusterRoles {
		if rules[r.Name] != nil {
			t.Errorf("%s is there twice", r.Name)
		}
		if len(r.Rules) == 0 || r.Labels["kubernetes.io/bootstrapping"] != "rbac-defaults" || r.Annotations[rbacv1.AutoUpdateAnnotationKey] != "true" {
			t.Errorf("%s: %d rules, %v, %v", r.Name, len(r.Rules), r.Labels, r.Annotations)
		}
		rules[r.Name] = r.Rules
	}
	for _, b := range d.ClusterRoleBindings {
		if rules[b.RoleRef.Name] == nil {
			t.Errorf("%s binds %s, which is not there", b.Name, b.RoleRef.Name)
		}
	}
	for _, pair := range [][2]string{{"cluster-admin", "admin"}, {"admin", "edit"}, {"edit", "view"}} {
		if missing := rbac.Missing(rules[pair[0]], rules[pair[1]]); len(missing) > 0 {
			t.Errorf("%s lacks of %s: %s", pair[0], pair[1], rbac.Words(missing))
		}
	}
	for role, absent := range map[string][]string{"view": {"secrets", "pods/exec", "pods/ephemeralcontainers"}, "admin": {"pods/ephemeralcontainers", "resourcequotas/status!"}} {
		for _, r := range rules[role] {
			for _, resource := range absent {
				if slices.Contains(r.Resources, resource) {
					t.Errorf("%s has %s", role, resource)
				}
			}
		}
	}
}

// BenchmarkDecide is one decision with 1,000 bindings: of somebody with one of them, of somebody with all of them and of nobody.
func BenchmarkDecide(b *testing.B) {
	p := world()
	for i := range 1000 {
		key := rbac.Key{Kind: rbac.RoleBinding, Namespace: "team", Name: fmt.Sprintf("n%04d", i)}
		p.PutBinding(key, 1, rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"},
			[]rbacv1.Subject{{Kind: "User", Name: fmt.Sprintf("user%d", i)}, {Kind: "User", Name: "everywhere"}})
	}
	for _, who := range []string{"user500", "everywhere", "nobody"} {
		b.Run(who, func(b *testing.B) {
			b.ReportAllocs()
			r := rbac.Request{User: who, Groups: []string{"system:authenticated"}, Verb: "create", Resource: "pods", Namespace: "team"}
			if who == "user500" {
				r.Verb = "list"
			}
			for b.Loop() {
				if p.Decide(&r).Allowed != (who == "user500") {
					b.Fatal("the wrong decision")
				}
			}
		})
	}
}
