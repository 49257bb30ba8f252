// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	rbacapply "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const notHeld = "is attempting to grant RBAC permissions not currently held:\n"

// Nobody gives a right that he does not have, in whatever way the object is written; who has escalate or bind may, and
// who writes without giving anything more is let.
func TestEscalation(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	ctx := t.Context()
	roles := "create,update,patch,get roles,rolebindings.rbac.authorization.k8s.io"
	limited := clientOf(t, person(t, shared.srv, grant(t, c, ns, "esc-limited", roles, "get,list pods")))
	role := func(name string, rules ...string) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rulesOf(rules...)}
	}
	writes := func(c *kubernetes.Clientset, name string, rules ...string) map[string]func() error {
		r := c.RbacV1().Roles(ns)
		patch, err := json.Marshal(map[string]any{"rules": rulesOf(rules...)})
		if err != nil {
			t.Fatal(err)
		}
		apply := rbacapply.Role(name, ns)
		for _, rule := range rulesOf(rules...) {
			apply.WithRules(rbacapply.PolicyRule().WithAPIGroups(rule.APIGroups...).WithResources(rule.Resources...).WithVerbs(rule.Verbs...))
		}
		fresh := *apply
		meta := *apply.ObjectMetaApplyConfiguration
		fresh.ObjectMetaApplyConfiguration = &meta
		made := fresh.WithName(name + "-applied")
		return map[string]func() error{
			"create": func() error {
				_, err := r.Create(ctx, role(name+"-new", rules...), metav1.CreateOptions{DryRun: []string{"All"}})
				return err
			},
			"update": func() error {
				_, err := r.Update(ctx, role(name, rules...), metav1.UpdateOptions{DryRun: []string{"All"}})
				return err
			},
			"put of a new one": func() error {
				_, err := r.Update(ctx, role(name+"-put", rules...), metav1.UpdateOptions{DryRun: []string{"All"}})
				return err
			},
			"merge patch": func() error {
				_, err := r.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{"All"}})
				return err
			},
			"json patch": func() error {
				rules, err := json.Marshal(rulesOf(rules...))
				if err != nil {
					return err
				}
				_, err = r.Patch(ctx, name, types.JSONPatchType,
					fmt.Appendf(nil, `[{"op":"replace","path":"/rules","value":%s}]`, rules),
					metav1.PatchOptions{DryRun: []string{"All"}})
				return err
			},
			"apply": func() error {
				_, err := r.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "t", Force: true,
					DryRun: []string{"All"}})
				return err
			},
			"apply of a new one": func() error {
				_, err := r.Apply(ctx, made, metav1.ApplyOptions{FieldManager: "t", Force: true,
					DryRun: []string{"All"}})
				return err
			},
		}
	}
	if _, err := c.RbacV1().Roles(ns).Create(ctx, role("victim", "get pods"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for way, do := range writes(limited, "victim", "get,list pods") {
		fine(t, way+" of what he has", do())
	}
	for way, do := range writes(limited, "victim", "get,list pods", "get secrets") {
		forbidden(t, way+" of more", do(), `user "esc-limited" (groups=["system:authenticated"]) `+notHeld+
			`{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`)
	}
	escalator := clientOf(t, person(t, shared.srv, grant(t, c, ns, "esc-escalator", roles,
		"escalate roles.rbac.authorization.k8s.io")))
	for way, do := range writes(escalator, "victim", "get secrets", "* *.*") {
		fine(t, way+" with escalate", do())
	}
	// A role that gives more than he has can be labelled by him, and cut down.
	if _, err := c.RbacV1().Roles(ns).Create(ctx, role("rich", "get secrets", "get pods"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := limited.RbacV1().Roles(ns).Patch(ctx, "rich", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	fine(t, "a label", err)
	_, err = limited.RbacV1().Roles(ns).Update(ctx, role("rich", "get pods"), metav1.UpdateOptions{})
	fine(t, "cutting down", err)
	_, err = limited.RbacV1().Roles("default").Create(ctx, role("elsewhere", "get pods"), metav1.CreateOptions{})
	forbidden(t, "elsewhere", err, `cannot create resource "roles"`)
}

// Bindings: to a role whose rights the writer has, or that he may bind.
func TestWhoMayBind(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	ctx := t.Context()
	bindings := "create,update,patch,get rolebindings.rbac.authorization.k8s.io"
	grant(t, c, ns, "reads-pods", "get pods")
	grant(t, c, ns, "reads-secrets", "get secrets")
	binding := func(kind, role string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "b-"}, Subjects: userSubject("anybody"),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}}
	}
	for i, test := range []struct {
		rights     []string
		kind, role string
		refused    string
	}{
		{[]string{"get pods"}, "Role", "reads-pods", ""},
		{[]string{"get pods"}, "Role", "reads-secrets", `{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`},
		{[]string{"get pods"}, "ClusterRole", "view", notHeld},
		{[]string{"get pods"}, "ClusterRole", "cluster-admin", `{APIGroups:["*"], Resources:["*"], Verbs:["*"]}`},
		{[]string{"bind clusterroles.rbac.authorization.k8s.io admin,view"}, "ClusterRole", "view", ""},
		{[]string{"bind clusterroles.rbac.authorization.k8s.io admin,view"}, "ClusterRole", "edit", notHeld},
		{[]string{"bind clusterroles.rbac.authorization.k8s.io admin,view"}, "Role", "reads-pods", notHeld},
		{[]string{"bind roles.rbac.authorization.k8s.io"}, "Role", "reads-secrets", ""},
		{[]string{"bind roles.rbac.authorization.k8s.io"}, "Role", "not-there-yet", ""},
		{[]string{"escalate roles.rbac.authorization.k8s.io"}, "Role", "reads-secrets", notHeld},
	} {
		who := grant(t, c, ns, fmt.Sprint("bnd", i), append(test.rights, bindings)...)
		_, err := clientOf(t, person(t, shared.srv, who)).RbacV1().RoleBindings(ns).Create(ctx,
			binding(test.kind, test.role), metav1.CreateOptions{})
		if test.refused == "" {
			fine(t, fmt.Sprintf("%d %s", i, test.role), err)
			continue
		}
		forbidden(t, fmt.Sprintf("%d %s", i, test.role), err, test.refused)
	}
	who := clientOf(t, person(t, shared.srv, "bnd0"))
	_, err := who.RbacV1().RoleBindings(ns).Create(ctx, binding("Role", "nothing"), metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a role that is not there: %v", err)
	}
	// More subjects of the same role are more rights given.
	_, err = who.RbacV1().RoleBindings(ns).Patch(ctx, "reads-secrets", types.MergePatchType,
		[]byte(`{"subjects":[{"kind":"User","name":"bnd0"}]}`), metav1.PatchOptions{})
	forbidden(t, "himself into another's binding", err, `Resources:["secrets"]`)
	_, err = who.RbacV1().RoleBindings(ns).Patch(ctx, "reads-secrets", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	fine(t, "a label", err)
	// Which role it is cannot change, not even for an administrator.
	_, err = c.RbacV1().RoleBindings(ns).Patch(ctx, "reads-pods", types.MergePatchType,
		[]byte(`{"roleRef":{"name":"reads-secrets"}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("another role: %v", err)
	}
	// A namespace's admin gives what he has, no more.
	bindTo(t, c, ns, "bnd-admin", rbacv1.RoleRef{Kind: "ClusterRole", Name: "admin"})
	admin := clientOf(t, person(t, shared.srv, "bnd-admin"))
	for role, refused := range map[string]bool{"view": false, "edit": false, "admin": false, "debug": true,
		"cluster-admin": true} {
		_, err := admin.RbacV1().RoleBindings(ns).Create(ctx, binding("ClusterRole", role), metav1.CreateOptions{})
		if refused {
			forbidden(t, "admin gives "+role, err, notHeld)
		} else {
			fine(t, "admin gives "+role, err)
		}
	}
}

// Aggregated roles take in what others label, so only who may do everything writes them.
func TestClusterEscalation(t *testing.T) {
	c := client(t)
	ctx := t.Context()
	const who = "cluster-esc"
	makers := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: who}, Rules: append(rulesOf(
		"create,update,patch,get clusterroles,clusterrolebindings.rbac.authorization.k8s.io", "list nodes"),
		rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}})}
	if _, err := c.RbacV1().ClusterRoles().Create(ctx, makers, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(ctx,
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: who}, Subjects: userSubject(who),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: who}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	limited := clientOf(t, person(t, shared.srv, who)).RbacV1()
	dry := metav1.CreateOptions{DryRun: []string{"All"}}
	try := func(role *rbacv1.ClusterRole) error {
		role.Name = who + "-new"
		_, err := limited.ClusterRoles().Create(ctx, role, dry)
		return err
	}
	fine(t, "what he has", try(&rbacv1.ClusterRole{Rules: append(rulesOf("list nodes"),
		rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}})}))
	forbidden(t, "another path", try(&rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"},
		NonResourceURLs: []string{"/metrics/*"}}}}),
		`{NonResourceURLs:["/metrics/*"], Verbs:["get"]}`)
	forbidden(t, "an aggregated role",
		try(&rbacv1.ClusterRole{AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}}), "must have cluster-admin privileges to use the aggregationRule", notHeld)
	_, err := limited.ClusterRoles().Patch(ctx, "view", types.MergePatchType,
		[]byte(`{"aggregationRule":null,"rules":[]}`), metav1.PatchOptions{DryRun: []string{"All"}})
	forbidden(t, "no aggregation any more", err, "aggregationRule")
	_, err = limited.ClusterRoles().Patch(ctx, "system:aggregate-to-edit", types.JSONPatchType,
		[]byte(`[{"op":"add","path":"/rules/-","value":{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}}]`),
		metav1.PatchOptions{DryRun: []string{"All"}})
	forbidden(t, "more into edit", err, notHeld)
	_,
		err = limited.ClusterRoleBindings().Create(ctx,
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: who + "-root"}, Subjects: userSubject(who),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}, dry)
	forbidden(t, "cluster-admin for himself", err, notHeld)
	_, err = limited.ClusterRoleBindings().Patch(ctx, "cluster-admin", types.MergePatchType,
		[]byte(`{"subjects":[{"kind":"User","name":"`+who+`"}]}`), metav1.PatchOptions{DryRun: []string{"All"}})
	forbidden(t, "himself into cluster-admin", err, notHeld)
}

// Impersonation takes a right of its own for each of user, group and account, and then the other's rights count, not
// one's own.
func TestImpersonation(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	ctx := t.Context()
	grant(t, c, ns, "imp-target", "list pods")
	admin := adminConfig(t)
	admin.Impersonate = rest.ImpersonationConfig{UserName: "imp-target"}
	as := clientOf(t, admin)
	_, err := as.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	fine(t, "as the target", err)
	_, err = as.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{})
	forbidden(t, "an administrator has only the target's rights", err,
		`User "imp-target" cannot list resource "secrets"`)

	nobody := person(t, shared.srv, "imp-nobody")
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "imp-target"}
	_, err = clientOf(t, nobody).CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	forbidden(t, "without the right", err, `User "imp-nobody" cannot impersonate`)

	bindTo(t, c, ns, "imp-editor", rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"})
	for account, words := range map[string]string{ns: "", "kube-system": `User "imp-editor" cannot impersonate`} {
		editor := person(t, shared.srv, "imp-editor")
		editor.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + account + ":default"}
		_, err := clientOf(t, editor).CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if words == "" {
			// it may, and the account may not
			words = `User "system:serviceaccount:` + ns + `:default" cannot list resource "pods"`
		}
		forbidden(t, "an editor as an account of "+account, err, words)
	}
	masters := person(t, shared.srv, grant(t, c, ns, "imp-groups", "list pods"))
	masters.Impersonate = rest.ImpersonationConfig{UserName: "imp-groups", Groups: []string{"system:masters"}}
	_, err = clientOf(t, masters).CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	forbidden(t, "a group", err, `User "imp-groups" cannot impersonate`)
}
