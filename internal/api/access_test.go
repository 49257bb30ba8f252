// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What `kubectl auth can-i` and programs that delegate their decisions ask is answered as a request would be.
func TestAccessReviews(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	ctx := t.Context()
	jane := clientOf(t, person(t, shared.srv, grant(t, c, ns, "rev-jane", "list pods", "create pods/exec",
		"get secrets mine")))
	attributes := func(text string) *authorizationv1.ResourceAttributes { // verb resource/subresource.group name
		f := strings.Fields(text)
		what, group, _ := strings.Cut(f[1], ".")
		resource, sub, _ := strings.Cut(what, "/")
		a := &authorizationv1.ResourceAttributes{Namespace: ns, Verb: f[0], Group: group, Resource: resource,
			Subresource: sub}
		if len(f) > 2 {
			a.Name = f[2]
		}
		return a
	}
	for text, want := range map[string]bool{
		"list pods": true, "get pods x": false, "create pods/exec x": true, "get pods/exec x": false,
		"create pods/attach x": false, "get secrets mine": true, "get secrets other": false, "get secrets": false,
		"list deployments.apps": false,
	} {
		own, err := jane.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes(text)}},
			metav1.CreateOptions{})
		if err != nil || own.Status.Allowed != want || own.Status.Denied {
			t.Errorf("self: %s: %+v, %v", text, own, err)
		}
		of, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: "rev-jane", ResourceAttributes: attributes(text)}},
			metav1.CreateOptions{})
		if err != nil || of.Status.Allowed != want || want &&
			!strings.Contains(of.Status.Reason, `RoleBinding "rev-jane/`+ns+`"`) {
			t.Errorf("of: %s: %+v, %v", text, of, err)
		}
		local, err := c.AuthorizationV1().LocalSubjectAccessReviews(ns).Create(ctx,
			&authorizationv1.LocalSubjectAccessReview{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns},
				Spec: authorizationv1.SubjectAccessReviewSpec{User: "rev-jane",
					ResourceAttributes: attributes(text)}}, metav1.CreateOptions{})
		if err != nil || local.Status.Allowed != want {
			t.Errorf("local: %s: %+v, %v", text, local, err)
		}
	}
	// A group alone, and a path.
	of, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			Groups:                []string{"system:monitoring"},
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}}},
		metav1.CreateOptions{})
	if err != nil || !of.Status.Allowed {
		t.Errorf("path: %+v, %v", of, err)
	}
	// Field selectors: a node may list the pods of its own.
	for node, want := range map[string]bool{"n1": true, "n2": false} {
		spec := authorizationv1.SubjectAccessReviewSpec{User: "system:node:n1", Groups: []string{"system:nodes"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods",
				FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: "spec.nodeName=" + node}}}
		for i := range 2 {
			if i == 1 {
				spec.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
					{Key: "spec.nodeName", Operator: metav1.FieldSelectorOpIn, Values: []string{node}}}}
			}
			of, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx,
				&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
			if err != nil || of.Status.Allowed != want {
				t.Errorf("pods of %s: %+v, %v", node, of, err)
			}
		}
	}
	_, err = jane.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "root", ResourceAttributes: attributes("list pods")}},
		metav1.CreateOptions{})
	forbidden(t, "about others", err, `cannot create resource "subjectaccessreviews"`)
}

// A question about rights that cannot be answered is refused, with the field that is wrong.
func TestAccessReviewRefusals(t *testing.T) {
	c := client(t).AuthorizationV1()
	ctx := t.Context()
	r := &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: "default"}
	n := &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/x"}
	for want, spec := range map[string]authorizationv1.SubjectAccessReviewSpec{
		"spec.user: Invalid value: \"\": at least one of user or group must be specified": {ResourceAttributes: r},
		"exactly one of nonResourceAttributes or resourceAttributes must be specified":    {User: "x"},
		"spec.nonResourceAttributes: Invalid value": {User: "x",
			ResourceAttributes: r, NonResourceAttributes: n},
		"spec.resourceAttributes.fieldSelector.requirements: Required value": {User: "x",
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				FieldSelector: &authorizationv1.FieldSelectorAttributes{}}},
	} {
		_, err := c.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec},
			metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, err := c.LocalSubjectAccessReviews("kube-system").Create(ctx, &authorizationv1.LocalSubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "x", ResourceAttributes: r}}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "namespace") {
		t.Errorf("another namespace: %v", err)
	}
	other := []byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`)
	raw := c.RESTClient().Post().Resource("subjectaccessreviews").SetHeader("Content-Type",
		"application/json").Body(other).Do(ctx)
	if err := raw.Error(); !apierrors.IsBadRequest(err) {
		t.Errorf("another kind: %v", err)
	}
	if _, err := c.SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{},
		metav1.CreateOptions{}); !apierrors.IsBadRequest(err) {
		t.Errorf("rules of no namespace: %v", err)
	}
}

// `kubectl auth can-i --list`: the rules of a namespace's and the cluster's bindings.
func TestRulesReview(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	list := func(who string, groups ...string) authorizationv1.SubjectRulesReviewStatus {
		t.Helper()
		r,
			err := clientOf(t,
			person(t, shared.srv, who, groups...)).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: ns}},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Status
	}
	has := func(s authorizationv1.SubjectRulesReviewStatus, verb, resource string) bool {
		return slices.ContainsFunc(s.ResourceRules, func(r authorizationv1.ResourceRule) bool {
			return slices.Contains(r.Verbs, verb) && slices.Contains(r.Resources, resource)
		})
	}
	jane := list(grant(t, c, ns, "rules-jane", "list pods", "get secrets mine"))
	if !has(jane, "list", "pods") || !has(jane, "create", "selfsubjectaccessreviews") || has(jane, "delete", "pods") ||
		jane.Incomplete || len(jane.NonResourceRules) == 0 {
		t.Errorf("jane: %+v", jane)
	}
	if root := list("rules-root", "system:masters"); !has(root, "*", "*") {
		t.Errorf("an administrator: %+v", root)
	}
	bindTo(t, c, ns, "rules-lost", rbacv1.RoleRef{Kind: "Role", Name: "gone"})
	if lost := list("rules-lost"); !lost.Incomplete || !strings.Contains(lost.EvaluationError, `"gone" not found`) {
		t.Errorf("a role that is missing: %+v", lost)
	}
	if node := list("system:node:n1", "system:nodes"); !node.Incomplete || node.EvaluationError == "" {
		t.Errorf("a node, whose rights are no rules: %+v", node)
	}
}
