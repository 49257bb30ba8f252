// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
)

// person is the configuration of somebody with a client certificate.
func person(t testing.TB, s *api.Server, name string, groups ...string) *rest.Config {
	t.Helper()
	config := configOf(t, s)
	cert, key, err := s.CA().Client(name, groups, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	config.CertData, config.KeyData, config.BearerToken = cert, key, ""
	return config
}

// ruleOf writes a rule as "verb,verb resource,resource.group [name,name]".
func ruleOf(text string) rbacv1.PolicyRule {
	f := strings.Fields(text)
	resources, group, _ := strings.Cut(f[1], ".")
	r := rbacv1.PolicyRule{Verbs: strings.Split(f[0], ","), APIGroups: []string{group},
		Resources: strings.Split(resources, ",")}
	if len(f) > 2 {
		r.ResourceNames = strings.Split(f[2], ",")
	}
	return r
}

func rulesOf(texts ...string) (rules []rbacv1.PolicyRule) {
	for _, text := range texts {
		rules = append(rules, ruleOf(text))
	}
	return rules
}

func userSubject(name string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}}
}

// grant gives a user rules in a namespace, by a role and a binding of the user's name, which it returns.
func grant(t testing.TB, c kubernetes.Interface, ns, user string, rules ...string) string {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rulesOf(rules...)}
	if _, err := c.RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bindTo(t, c, ns, user, rbacv1.RoleRef{Kind: "Role", Name: user})
	return user
}

func bindTo(t testing.TB, c kubernetes.Interface, ns, user string, ref rbacv1.RoleRef) {
	t.Helper()
	ref.APIGroup = rbacv1.GroupName
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: ref, Subjects: userSubject(user)}
	if _, err := c.RbacV1().RoleBindings(ns).Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// forbidden fails the test unless the error is a 403 that says all the words.
func forbidden(t testing.TB, what string, err error, words ...string) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

func fine(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
