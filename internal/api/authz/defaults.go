// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// atOnce is how many default roles are written at the same time: the store syncs them to disk together.
const atOnce = 16

// EnsureDefaults makes the default roles and bindings, and gives those that are there back what they lack. What
// somebody added stays, and what is annotated rbac.authorization.kubernetes.io/autoupdate=false stays as it is. server
// is who the API server is towards nodes.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#auto-reconciliation
func (z *Authorizers) EnsureDefaults(ctx context.Context, stores registry.Stores, server string) error {
	defaults := rbac.NewDefaults(server)
	roles, err := defaultsOf(ctx, stores, "clusterroles")
	if err != nil {
		return err
	}
	bindings, err := defaultsOf(ctx, stores, "clusterrolebindings")
	if err != nil {
		return err
	}
	g, writing := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i := range defaults.ClusterRoles {
		role := &defaults.ClusterRoles[i]
		g.Go(func() error {
			return again("cluster role "+role.Name, func() error {
				_, err := (&reconciliation.ReconcileRoleOptions{
					Role: reconciliation.ClusterRoleRuleOwner{ClusterRole: role}, Confirm: true,
					Client: ownRoles{writing, roles},
				}).Run()
				return err
			})
		})
	}
	for i := range defaults.ClusterRoleBindings {
		binding := &defaults.ClusterRoleBindings[i]
		g.Go(func() error {
			return again("cluster role binding "+binding.Name, func() error {
				_, err := (&reconciliation.ReconcileRoleBindingOptions{
					RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: binding}, Confirm: true,
					Client: ownBindings{writing, bindings},
				}).Run()
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return z.policy.reading(ctx, func(*rbac.Policy) {}) // whoever finds the server ready can be answered at once
}

func again(what string, do func() error) error {
	if err := retry.RetryOnConflict(retry.DefaultBackoff, do); err != nil {
		return fmt.Errorf("default %s: %w", what, err)
	}
	return nil
}

// ownWrites reads and writes a kind of the cluster for the server itself. An object's first read is from one list of
// all.
type ownWrites struct {
	*registry.REST
	mu     sync.Mutex
	listed map[string]runtime.Object
}

func defaultsOf(ctx context.Context, stores registry.Stores, plural string) (*ownWrites, error) {
	w := &ownWrites{REST: stores[plural], listed: map[string]runtime.Object{}}
	list, err := w.List(w.Within(ctx, ""), &metainternal.ListOptions{})
	if err == nil {
		err = meta.EachListItem(list, func(obj runtime.Object) error {
			m, err := meta.Accessor(obj)
			if err == nil {
				w.listed[m.GetName()] = obj
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the %s: %w", plural, err)
	}
	return w, nil
}

func (w *ownWrites) get(ctx context.Context, name string) (runtime.Object, error) {
	w.mu.Lock()
	obj := w.listed[name]
	delete(w.listed, name)
	w.mu.Unlock()
	if obj != nil {
		return obj, nil
	}
	return w.Get(w.Within(ctx, ""), name, &metav1.GetOptions{})
}

func (w *ownWrites) create(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	return w.Create(w.Within(ctx, ""), obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
}

func (w *ownWrites) update(ctx context.Context, name string, obj runtime.Object) (runtime.Object, error) {
	out, _, err := w.Update(w.Within(ctx, ""), name, rest.DefaultUpdatedObjectInfo(obj), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return out, err
}

// ownRoles is the library's view of cluster roles.
type ownRoles struct {
	ctx context.Context //nolint:containedctx // the library's interface has none
	*ownWrites
}

func (r ownRoles) owner(obj runtime.Object, err error) (reconciliation.RuleOwner, error) {
	role, ok := obj.(*rbacv1.ClusterRole)
	if err == nil && !ok {
		err = fmt.Errorf("the store of clusterroles returned a %T", obj)
	}
	if err != nil {
		return nil, err
	}
	return reconciliation.ClusterRoleRuleOwner{ClusterRole: role}, nil
}

// Get implements reconciliation.RuleOwnerModifier.
func (r ownRoles) Get(_, name string) (reconciliation.RuleOwner, error) {
	return r.owner(r.get(r.ctx, name))
}

// Create implements reconciliation.RuleOwnerModifier.
func (r ownRoles) Create(in reconciliation.RuleOwner) (reconciliation.RuleOwner, error) {
	return r.owner(r.create(r.ctx, in.GetObject()))
}

// Update implements reconciliation.RuleOwnerModifier.
func (r ownRoles) Update(in reconciliation.RuleOwner) (reconciliation.RuleOwner, error) {
	return r.owner(r.update(r.ctx, in.GetName(), in.GetObject()))
}

// ownBindings is the library's view of cluster role bindings.
type ownBindings struct {
	ctx context.Context //nolint:containedctx // the library's interface has none
	*ownWrites
}

func (b ownBindings) binding(obj runtime.Object, err error) (reconciliation.RoleBinding, error) {
	binding, ok := obj.(*rbacv1.ClusterRoleBinding)
	if err == nil && !ok {
		err = fmt.Errorf("the store of clusterrolebindings returned a %T", obj)
	}
	if err != nil {
		return nil, err
	}
	return reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: binding}, nil
}

// Get implements reconciliation.RoleBindingModifier.
func (b ownBindings) Get(_, name string) (reconciliation.RoleBinding, error) {
	return b.binding(b.get(b.ctx, name))
}

// Create implements reconciliation.RoleBindingModifier.
func (b ownBindings) Create(in reconciliation.RoleBinding) (reconciliation.RoleBinding, error) {
	return b.binding(b.create(b.ctx, in.GetObject()))
}

// Update implements reconciliation.RoleBindingModifier.
func (b ownBindings) Update(in reconciliation.RoleBinding) (reconciliation.RoleBinding, error) {
	return b.binding(b.update(b.ctx, in.GetName(), in.GetObject()))
}

// Delete implements reconciliation.RoleBindingModifier: of a binding that names another role, which cannot be changed.
func (b ownBindings) Delete(_, name string, uid types.UID) error {
	_, _, err := b.ownWrites.Delete(b.Within(b.ctx, ""), name, rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	return err
}
