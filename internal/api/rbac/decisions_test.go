// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/wherryproject/wherry/internal/api/rbac"
)

// world has the default roles, and people with some of them.
func world() *rbac.Policy {
	p := rbac.NewPolicy()
	d := rbac.NewDefaults("wherry-apiserver")
	for _, r := range d.ClusterRoles {
		p.PutRole(rbac.Key{Kind: rbac.ClusterRole, Name: r.Name}, 1, r.Rules)
	}
	for _, b := range d.ClusterRoleBindings {
		p.PutBinding(rbac.Key{Kind: rbac.ClusterRoleBinding, Name: b.Name}, 1, b.RoleRef, b.Subjects)
	}
	n := 0
	bind := func(namespace, kind, role string, subjects ...rbacv1.Subject) {
		n++
		key := rbac.Key{Kind: rbac.RoleBinding, Namespace: namespace, Name: fmt.Sprint("b", n)}
		if namespace == "" {
			key.Kind = rbac.ClusterRoleBinding
		}
		p.PutBinding(key, 1, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}, subjects)
	}
	role := func(namespace, name string, rules ...rbacv1.PolicyRule) {
		key := rbac.Key{Kind: rbac.Role, Namespace: namespace, Name: name}
		if namespace == "" {
			key.Kind = rbac.ClusterRole
		}
		p.PutRole(key, 1, rules)
	}
	user := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "User", Name: name} }
	group := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "Group", Name: name} }
	account := func(ns, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: "ServiceAccount", Namespace: ns, Name: name}
	}
	rule := func(group, resources, verbs string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","), ResourceNames: names}
	}

	bind("team", "ClusterRole", "view", user("viewer"))
	bind("team", "ClusterRole", "edit", user("editor"))
	bind("team", "ClusterRole", "admin", user("admin"))
	bind("team", "ClusterRole", "debug", user("debugger"))
	bind("team", "ClusterRole", "cluster-admin", user("owner"))
	bind("", "ClusterRole", "view", user("watcher"))
	bind("", "ClusterRole", "system:auth-delegator", user("delegator"))
	bind("", "ClusterRole", "system:node-bootstrapper", group("system:bootstrappers"))

	// From the page's own examples.
	role("team", "pod-reader", rule("", "pods", "get,watch,list"))
	bind("team", "Role", "pod-reader", user("jane"))
	role("", "secret-reader", rule("", "secrets", "get,watch,list"))
	bind("team", "ClusterRole", "secret-reader", user("dave"))
	bind("", "ClusterRole", "secret-reader", group("manager"))
	role("team", "configmap-updater", rule("", "configmaps", "update,get", "my-configmap"))
	bind("team", "Role", "configmap-updater", user("named"))
	role("team", "pod-and-pod-logs-reader", rule("", "pods,pods/log", "get,list"))
	bind("team", "Role", "pod-and-pod-logs-reader", user("logs"))
	bind("team", "Role", "pod-reader", account("team", "robot"), account("other", "robot"))
	bind("team", "Role", "pod-reader", group("system:serviceaccounts:batch"))
	role("", "scaler", rule("*", "*/scale", "get,update"))
	bind("", "ClusterRole", "scaler", user("scaler"))
	role("", "all-subresources", rule("", "pods/*", "get")) // no such form: it names a subresource called "*"
	bind("", "ClusterRole", "all-subresources", user("stars"))
	role("", "everything-core", rule("", "*", "*"))
	bind("team", "ClusterRole", "everything-core", user("core"))
	role("", "paths", rbacv1.PolicyRule{NonResourceURLs: []string{"/healthz/*", "/logs", "/metrics*"}, Verbs: []string{"get", "post"}})
	bind("", "ClusterRole", "paths", user("paths"))
	bind("team", "ClusterRole", "paths", user("nopaths"))
	bind("team", "Role", "ghost", user("haunted"))
	role("team", "signer", rule("certificates.k8s.io", "signers", "approve", "example.com/mine", "example.com/*"))
	bind("team", "Role", "signer", user("signer"))
	role("team", "exec-read", rule("", "pods/exec,pods/attach,pods/portforward", "get"))
	bind("team", "Role", "exec-read", user("peeper"))
	role("team", "exec", rule("", "pods/exec", "create"))
	bind("team", "Role", "exec", user("execer"))
	return p
}

// groupsOf gives the people of the table their groups; everybody else is just authenticated.
func groupsOf(who string) []string {
	switch who {
	case "anonymous":
		return []string{"system:unauthenticated"}
	case "root":
		return []string{"system:masters", "system:authenticated"}
	case "boss":
		return []string{"manager", "system:authenticated"}
	case "joiner":
		return []string{"system:bootstrappers", "system:authenticated"}
	case "prometheus":
		return []string{"system:monitoring", "system:authenticated"}
	}
	if rest, ok := strings.CutPrefix(who, "system:serviceaccount:"); ok {
		ns, _, _ := strings.Cut(rest, ":")
		return []string{"system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"}
	}
	return []string{"system:authenticated"}
}

// TestDecisions: what is allowed and what is not, with the default roles and some others, as the page "Using RBAC Authorization" has
// it (IX-07, EC-20: each subresource of a pod on its own). The lines of the file are: yes or no, who, verb, what (resource,
// subresource and group, or a path), namespace ("-": none), and a name if there is one.
func TestDecisions(t *testing.T) {
	text, err := os.ReadFile("testdata/decisions.txt")
	if err != nil {
		t.Fatal(err)
	}
	p := world()
	rows := 0
	for number, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 4 || f[0] != "yes" && f[0] != "no" {
			t.Fatalf("line %d: %q", number+1, line)
		}
		rows++
		r := rbac.Request{User: f[1], Groups: groupsOf(f[1]), Verb: f[2]}
		if strings.HasPrefix(f[3], "/") {
			r.NonResource, r.Path = true, f[3]
		} else {
			what, group, _ := strings.Cut(f[3], ".")
			r.Group = group
			r.Resource, r.Subresource, _ = strings.Cut(what, "/")
			if f[4] != "-" {
				r.Namespace = f[4]
			}
			if len(f) > 5 {
				r.Name = f[5]
			}
		}
		d := p.Decide(&r)
		if d.Allowed != (f[0] == "yes") {
			t.Errorf("line %d: %s: allowed: %t, %s", number+1, strings.TrimSpace(line), d.Allowed, d.Reason)
		}
		if d.Allowed && !strings.HasPrefix(d.Reason, "RBAC: allowed by ") {
			t.Errorf("line %d: reason %q", number+1, d.Reason)
		}
	}
	if rows < 150 {
		t.Errorf("only %d rows", rows)
	}
	t.Logf("%d rows", rows)
}
