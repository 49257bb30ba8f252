// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	podsecuritylabels "k8s.io/pod-security-admission/api"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/api/registry"
)

var errNodeRules = errors.New("node authorizer does not support user rule resolution")

func missingRoles(missing []string) error {
	slices.Sort(missing)
	return errors.New(strings.Join(slices.Compact(missing), ", "))
}

// granting is the storage of roles or bindings as clients write it: nobody gives a right that he or she does not have.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping
type granting struct {
	*registry.REST
	policy     *policy
	authorizer authorizer.UnconditionalAuthorizer
	// open reports whether a namespace lets every pod in because nobody has decided otherwise.
	open func(ctx context.Context, namespace string) (bool, error)
}

// ServeRBAC serves roles and bindings. open reports whether a namespace admits every pod because nobody has decided
// otherwise.
func (z *Authorizers) ServeRBAC(all registry.Served, open func(ctx context.Context, namespace string) (bool, error)) {
	for _, r := range z.policy.rests {
		all.Add(rbacv1.SchemeGroupVersion, r.Kind.Plural, granting{r, z.policy, z, open})
	}
}

// Create implements rest.Creater.
func (g granting) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	if err := g.check(ctx, obj, nil); err != nil {
		return nil, err
	}
	return g.REST.Create(ctx, obj, validate, options)
}

// Update implements rest.Updater: of PUTs, patches and applies, which may create too.
func (g granting) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, mayCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	checked := rest.WrapUpdatedObjectInfo(info, func(ctx context.Context, obj,
		old runtime.Object) (runtime.Object, error) {
		if m, err := meta.Accessor(old); err != nil || m.GetUID() == "" {
			old = nil
		}
		return obj, g.check(ctx, obj, old)
	})
	return g.REST.Update(ctx, name, checked, create, update, mayCreate, options)
}

// check refuses what would give more rights than the writer has; old is nil for a new object.
func (g granting) check(ctx context.Context, obj, old runtime.Object) error {
	switch o := obj.(type) {
	case *rbacv1.Role:
		if was, ok := old.(*rbacv1.Role); ok && equality.Semantic.DeepEqual(was.Rules, o.Rules) {
			return nil
		}
		if err := g.checkRules(ctx, o.Name, o.Rules); err != nil {
			return err
		}
		if was, ok := old.(*rbacv1.Role); ok {
			g.warnOfWider(ctx, o.Name, was.Rules, o.Rules)
		}
		return nil
	case *rbacv1.ClusterRole:
		was, ok := old.(*rbacv1.ClusterRole)
		if ok && equality.Semantic.DeepEqual(was.Rules, o.Rules) &&
			equality.Semantic.DeepEqual(was.AggregationRule, o.AggregationRule) {
			return nil
		}
		if o.AggregationRule != nil || ok && was.AggregationRule != nil { // which roles join later is not known now
			if err := g.checkRules(ctx, o.Name, rbac.Everything()); err != nil {
				return g.forbidden(o.Name,
					fmt.Errorf("must have cluster-admin privileges to use the aggregationRule: %w", reasonOf(err)))
			}
		}
		return g.checkRules(ctx, o.Name, o.Rules)
	case *rbacv1.RoleBinding:
		if was, ok := old.(*rbacv1.RoleBinding); ok && sameGrant(was.RoleRef, o.RoleRef, was.Subjects, o.Subjects) {
			return nil
		}
		if err := g.checkBinding(ctx, o.Name, o.RoleRef); err != nil {
			return err
		}
		g.warnOfReach(ctx, o)
		return nil
	case *rbacv1.ClusterRoleBinding:
		if was, ok := old.(*rbacv1.ClusterRoleBinding); ok &&
			sameGrant(was.RoleRef, o.RoleRef, was.Subjects, o.Subjects) {
			return nil
		}
		if err := g.checkBinding(ctx, o.Name, o.RoleRef); err != nil {
			return err
		}
		g.warnOfReachEverywhere(ctx, o)
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("not an object of %s: %T", g.Kind.Resource(), obj))
}

func sameGrant(a, b rbacv1.RoleRef, as, bs []rbacv1.Subject) bool {
	return a == b && equality.Semantic.DeepEqual(as, bs)
}

func (g granting) checkRules(ctx context.Context, name string, rules []rbacv1.PolicyRule) error {
	return g.checkGrant(ctx, name, rules, authorizer.AttributesRecord{Verb: "escalate", Resource: g.Kind.Plural,
		Name: name})
}

func (g granting) checkBinding(ctx context.Context, name string, ref rbacv1.RoleRef) error {
	resource := "clusterroles"
	if ref.Kind == rbac.Role {
		resource = "roles"
	}
	leave := authorizer.AttributesRecord{Verb: "bind", Resource: resource, Name: ref.Name}
	rules, found, err := g.policy.rulesOf(ctx, ref, request.NamespaceValue(ctx))
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case found:
		return g.checkGrant(ctx, name, rules, leave)
	}
	if allowed, err := g.allowed(ctx, leave); err != nil || allowed {
		return err
	}
	return apierrors.NewNotFound(rbacv1.Resource(resource), ref.Name) // nobody knows what it would give
}

// warnOfReach warns whoever grants a right that amounts to more than its name says: to everything, in a namespace that
// admits every pod (RS-11). That is the default, as in Kubernetes, and what people who share a server do not expect.
func (g granting) warnOfReach(ctx context.Context, b *rbacv1.RoleBinding) {
	namespace := request.NamespaceValue(ctx)
	rules, found, err := g.policy.rulesOf(ctx, b.RoleRef, namespace)
	if err != nil || !found || !rbac.ReachesNode(rules) {
		return
	}
	if open, err := g.open(ctx, namespace); err != nil || !open {
		return // a namespace that cannot be read is refused by what comes next
	}
	warning.AddWarning(ctx, "",
		fmt.Sprintf("namespace %q has no Pod Security level, so %s %q lets its subjects become root on the node with a privileged pod, and administrators of this server; "+
			"to prevent that: kubectl label namespace %s %s=baseline", namespace, b.RoleRef.Kind, b.RoleRef.Name,
			namespace, podsecuritylabels.EnforceLevelLabel))
}

// warnOfWider does so when a role that may have been given already gets such a right.
func (g granting) warnOfWider(ctx context.Context, name string, was, is []rbacv1.PolicyRule) {
	if rbac.ReachesNode(was) || !rbac.ReachesNode(is) {
		return
	}
	namespace := request.NamespaceValue(ctx)
	if open, err := g.open(ctx, namespace); err != nil || !open {
		return
	}
	warning.AddWarning(ctx, "",
		fmt.Sprintf("namespace %q has no Pod Security level, so Role %q now lets those it is bound to become root on the node with a privileged pod, and administrators of this server; "+
			"to prevent that: kubectl label namespace %s %s=baseline", namespace, name, namespace,
			podsecuritylabels.EnforceLevelLabel))
}

// warnOfReachEverywhere does so for a right in all namespaces. Who is given every right is meant to be an
// administrator.
func (g granting) warnOfReachEverywhere(ctx context.Context, b *rbacv1.ClusterRoleBinding) {
	rules, found, err := g.policy.rulesOf(ctx, b.RoleRef, "")
	if err != nil || !found || !rbac.ReachesNode(rules) || len(rbac.Missing(rules, rbac.Everything())) == 0 {
		return
	}
	where := "any namespace that has no Pod Security level"
	if open, err := g.open(ctx, metav1.NamespaceSystem); err == nil && open {
		where = "kube-system, or any other namespace that has no Pod Security level"
	}
	warning.AddWarning(ctx, "",
		fmt.Sprintf("%s %q in all namespaces lets its subjects become root on the node with a privileged pod in %s, and administrators of this server; "+
			"to prevent that, create a RoleBinding in each namespace that is meant", b.RoleRef.Kind, b.RoleRef.Name,
			where))
}

// checkGrant passes who has the leave (escalate or bind), and who has all the rights himself.
func (g granting) checkGrant(ctx context.Context, name string, rules []rbacv1.PolicyRule,
	leave authorizer.AttributesRecord) error {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewUnauthorized("the request has no user")
	}
	if allowed, err := g.allowed(ctx, leave); err != nil || allowed {
		return err
	}
	have, lost, err := g.policy.rulesFor(ctx, u, request.NamespaceValue(ctx))
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	missing := rbac.Missing(have, rules)
	if len(missing) == 0 {
		return nil
	}
	return g.forbidden(name, attempt(u, missing, lost))
}

func (g granting) allowed(ctx context.Context, leave authorizer.AttributesRecord) (bool, error) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return false, apierrors.NewUnauthorized("the request has no user")
	}
	leave.User, leave.ResourceRequest, leave.Namespace = u, true, request.NamespaceValue(ctx)
	leave.APIGroup, leave.APIVersion = rbacv1.GroupName, rbacv1.SchemeGroupVersion.Version
	decision, _, err := g.authorizer.Authorize(ctx, leave)
	if decision != authorizer.DecisionAllow && err != nil {
		return false, apierrors.NewInternalError(err)
	}
	return decision == authorizer.DecisionAllow, nil
}

func attempt(u user.Info, missing []rbacv1.PolicyRule, lost []string) error {
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		u.GetName(), u.GetGroups(), rbac.Words(missing))
	if len(lost) > 0 {
		text += "; resolution errors: " + missingRoles(lost).Error()
	}
	return errors.New(text)
}

func (g granting) forbidden(name string, err error) error {
	return apierrors.NewForbidden(g.Kind.Resource(), name, err)
}

// reasonOf is what a refusal says without the words that every refusal has.
func reasonOf(err error) error {
	if _, after, found := strings.Cut(err.Error(), "is forbidden: "); found {
		return errors.New(after)
	}
	return err
}
