// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Roles are refused for what Kubernetes refuses, with its field paths.
func TestRole(t *testing.T) {
	type role = rbacv1.Role
	good := func() *role {
		return &role{ObjectMeta: object("system:My_Role"), Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"a"}}}}
	}
	rows := []row[role]{
		{"no rules", func(r *role) { r.Rules = nil }, "", ""},
		{"no verbs", func(r *role) { r.Rules[0].Verbs = nil }, "rules[0].verbs", "Required value: verbs must contain at least one value"},
		{"no groups", func(r *role) { r.Rules[0].APIGroups = nil }, "rules[0].apiGroups", "Required value: resource rules must supply at least one api group"},
		{"no resources", func(r *role) { r.Rules[0].Resources = nil }, "rules[0].resources", "Required value: resource rules must supply at least one resource"},
		{"paths", func(r *role) { r.Rules[0] = rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/x"}} },
			"rules[0].nonResourceURLs", "namespaced rules cannot apply to non-resource URLs"},
		{"a star for a verb", func(r *role) { r.Rules[0].Verbs = []string{"*"} }, "", ""},
	}
	check(t, good, ValidateRole, append(rows,
		row[role]{"name", func(r *role) { r.Name = "a/b" }, "metadata.name", "may not contain '/'"},
		row[role]{"dots", func(r *role) { r.Name = ".." }, "metadata.name", "may not be"},
		row[role]{"namespace", func(r *role) { r.Namespace = "" }, "metadata.namespace", "Required"}))
	checkUpdate(t, good, ValidateRoleUpdate, nil, rows)
}

// So are cluster roles, which may also aggregate and name paths.
func TestClusterRole(t *testing.T) {
	type role = rbacv1.ClusterRole
	good := func() *role {
		return &role{ObjectMeta: metav1.ObjectMeta{Name: "r", ResourceVersion: "1"}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
			{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics", "/logs/*"}}}}
	}
	rows := []row[role]{
		{"both", func(r *role) { r.Rules[1].Resources = []string{"pods"} }, "rules[1].nonResourceURLs", "rules cannot apply to both regular resources and non-resource URLs"},
		{"nothing", func(r *role) { r.Rules[1] = rbacv1.PolicyRule{} }, "rules[1].verbs", "Required"},
		{"no selector", func(r *role) { r.AggregationRule = &rbacv1.AggregationRule{} }, "aggregationRule.clusterRoleSelectors", "at least one clusterRoleSelector required"},
		{"all", func(r *role) {
			r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
		}, "", ""},
		{"bad selector", func(r *role) {
			r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a b": "c"}}}}
		}, "aggregationRule.clusterRoleSelectors[0].matchLabels", "Invalid value"},
	}
	check(t, good, ValidateClusterRole, rows)
	checkUpdate(t, good, ValidateClusterRoleUpdate, nil, rows)
}

// So are bindings; what a binding refers to never changes.
func TestRoleBinding(t *testing.T) {
	type binding = rbacv1.RoleBinding
	good := func() *binding {
		b := &binding{ObjectMeta: object("b"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}, Subjects: []rbacv1.Subject{
			{Kind: "User", Name: "jane"}, {Kind: "Group", Name: "system:authenticated"}, {Kind: "ServiceAccount", Name: "bot"}}}
		SetDefaultsRoleBinding(b)
		return b
	}
	if b := good(); b.RoleRef.APIGroup != rbacv1.GroupName || b.Subjects[0].APIGroup != rbacv1.GroupName || b.Subjects[2].APIGroup != "" {
		t.Errorf("defaults: %+v", b)
	}
	rows := []row[binding]{
		{"nobody", func(b *binding) { b.Subjects = nil }, "", ""},
		{"no name", func(b *binding) { b.Subjects[0].Name = "" }, "subjects[0].name", "Required"},
		{"kind", func(b *binding) { b.Subjects[0].Kind = "Robot" }, "subjects[0].kind", `supported values: "ServiceAccount", "User", "Group"`},
		{"a user's group", func(b *binding) { b.Subjects[0].APIGroup = "x" }, "subjects[0].apiGroup", `supported values: "rbac.authorization.k8s.io"`},
		{"an account's group", func(b *binding) { b.Subjects[2].APIGroup = rbacv1.GroupName }, "subjects[2].apiGroup", `supported values: ""`},
		{"an account's name", func(b *binding) { b.Subjects[2].Name = "A b" }, "subjects[2].name", "RFC 1123"},
	}
	check(t, good, ValidateRoleBinding, append(rows,
		row[binding]{"role's group", func(b *binding) { b.RoleRef.APIGroup = "x" }, "roleRef.apiGroup", "Unsupported value"},
		row[binding]{"role's kind", func(b *binding) { b.RoleRef.Kind = "Pod" }, "roleRef.kind", `supported values: "Role", "ClusterRole"`},
		row[binding]{"role's name", func(b *binding) { b.RoleRef.Name = "" }, "roleRef.name", "Required"},
		row[binding]{"role's path", func(b *binding) { b.RoleRef.Name = "a%b" }, "roleRef.name", "may not contain '%'"}))
	checkUpdate(t, good, ValidateRoleBindingUpdate, nil, append(rows,
		row[binding]{"another role", func(b *binding) { b.RoleRef.Name = "s" }, "roleRef", "cannot change roleRef"},
		row[binding]{"another kind of role", func(b *binding) { b.RoleRef.Kind = "ClusterRole" }, "roleRef", "cannot change roleRef"}))
}

// So are bindings of the cluster.
func TestClusterRoleBinding(t *testing.T) {
	type binding = rbacv1.ClusterRoleBinding
	good := func() *binding {
		b := &binding{ObjectMeta: metav1.ObjectMeta{Name: "b", ResourceVersion: "1"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "bot"}}}
		SetDefaultsClusterRoleBinding(b)
		return b
	}
	check(t, good, ValidateClusterRoleBinding, []row[binding]{
		{"a role of a namespace", func(b *binding) { b.RoleRef.Kind = "Role" }, "roleRef.kind", `supported values: "ClusterRole"`},
		{"an account of no namespace", func(b *binding) { b.Subjects[0].Namespace = "" }, "subjects[0].namespace", "Required"},
	})
	checkUpdate(t, good, ValidateClusterRoleBindingUpdate, nil, []row[binding]{
		{"another role", func(b *binding) { b.RoleRef.Name = "s" }, "roleRef", "cannot change roleRef"}})
}
