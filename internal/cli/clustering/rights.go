// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// atOnce is how many questions a cluster is asked at a time.
const atOnce = 8

// allowed refuses, with all rights that are missing, unless the caller has the verbs for each object.
func (p *plan) allowed(ctx context.Context, verbs ...string) error {
	rights, err := p.rights(p.objects, verbs)
	if err != nil {
		return err
	}
	return p.have(ctx, rights)
}

// watchable refuses unless the caller may see how far it is what is waited for: otherwise he would wait in vain.
func (p *plan) watchable(ctx context.Context) error {
	var awaited []*unstructured.Unstructured
	for _, o := range p.objects {
		if slices.Contains([]string{"Deployment", "DaemonSet", "APIService"}, o.GetKind()) {
			awaited = append(awaited, o)
		}
	}
	rights, err := p.rights(awaited, []string{"get", "list", "watch"})
	if err != nil {
		return err
	}
	for _, verb := range []string{"list", "watch"} {
		rights = append(rights, authorizationv1.ResourceAttributes{Verb: verb, Version: "v1", Resource: "pods",
			Namespace: namespaceOf(p.objects)})
	}
	if err := p.have(ctx, rights); err != nil {
		return fmt.Errorf("%w, or do not wait: --wait=false", err)
	}
	return nil
}

// have refuses, with all rights that are missing, unless the caller has them.
func (p *plan) have(ctx context.Context, rights []authorizationv1.ResourceAttributes) error {
	denied := make([]bool, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range rights {
		group.Go(func() error {
			review := &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &rights[i]}}
			answer, err := p.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err == nil {
				denied[i] = !answer.Status.Allowed
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("whether you have the rights for this could not be found out: %w", err)
	}
	return missing(rights, denied)
}

// rights are those that the verbs need for the objects, each once. What is made has no name yet.
func (c *connection) rights(objects []*unstructured.Unstructured, verbs []string) (
	all []authorizationv1.ResourceAttributes, err error) {
	seen := map[authorizationv1.ResourceAttributes]bool{}
	for _, o := range objects {
		_, resource, err := c.of(o.GroupVersionKind(), o.GetNamespace())
		if err != nil {
			return nil, fmt.Errorf("%s: this cluster does not have the kind: %w", title(o), err)
		}
		for _, verb := range verbs {
			r := authorizationv1.ResourceAttributes{Verb: verb, Group: resource.Group, Version: resource.Version,
				Resource: resource.Resource, Namespace: o.GetNamespace(), Name: o.GetName()}
			if verb == "create" {
				r.Name = ""
			}
			if !seen[r] {
				all = append(all, r)
			}
			seen[r] = true
		}
	}
	return all, nil
}

// missing is an error that names the rights that were denied; nil if none was.
func missing(rights []authorizationv1.ResourceAttributes, denied []bool) error {
	var lines []string
	for i, r := range rights {
		if !denied[i] {
			continue
		}
		what := r.Resource
		if r.Group != "" {
			what += "." + r.Group
		}
		if r.Name != "" {
			what += " " + r.Name
		}
		if r.Namespace != "" {
			what += " in namespace " + r.Namespace
		}
		lines = append(lines, r.Verb+" "+what)
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("you lack rights that this needs, and nothing was changed:\n%s\n"+
		"ask an administrator of the cluster for it", strings.Join(lines, "\n"))
}
