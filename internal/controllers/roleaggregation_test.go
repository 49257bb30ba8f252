// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// A role with the right label is part of the default role at once, changes with it and leaves it again; a role of roles of roles
// follows. https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles
func TestRoleAggregation(t *testing.T) {
	client := start(t)
	roles := client.RbacV1().ClusterRoles()
	rule := func(resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"stable.example.com"}, Resources: []string{resource}, Verbs: []string{"list"}}
	}
	joins, err := roles.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "crontabs-view", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
		Rules:      []rbacv1.PolicyRule{rule("crontabs")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"view", "edit", "admin"} { // each is part of the next
		awaitRole(t, client, name, "crontabs", true)
	}
	joins.Rules = []rbacv1.PolicyRule{rule("jobtabs")}
	if joins, err = roles.Update(t.Context(), joins, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRole(t, client, "admin", "jobtabs", true)
	awaitRole(t, client, "admin", "crontabs", false)
	joins.Labels = nil
	if _, err = roles.Update(t.Context(), joins, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRole(t, client, "admin", "jobtabs", false)

	// What somebody writes into an aggregated role does not stay.
	view, err := roles.Get(t.Context(), "view", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	view.Rules = append(view.Rules, rule("smuggled"))
	if _, err := roles.Update(t.Context(), view, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRole(t, client, "view", "smuggled", false)
	if err := roles.Delete(t.Context(), "crontabs-view", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitRole waits until a role has, or has not, a rule for a resource.
func awaitRole(t *testing.T, client kubernetes.Interface, name, resource string, want bool) {
	t.Helper()
	w, err := client.RbacV1().ClusterRoles().Watch(t.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for ev := range w.ResultChan() { // begins with the role as it is
		role, ok := ev.Object.(*rbacv1.ClusterRole)
		if ok && want == slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, resource) }) {
			return
		}
	}
	t.Fatalf("role %s: %s: still not %t", name, resource, want)
}
