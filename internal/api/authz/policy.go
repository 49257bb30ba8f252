// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"
	"errors"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// policy is the view of the stored roles and bindings by which requests are decided. What this server writes is in it
// before the writer has its answer, so that a right can be used as soon as it is given, and is gone as soon as it is
// taken; what others write into the same etcd comes by watch. Both say at which version, so their order does not
// matter.
type policy struct {
	rests []*registry.REST

	mu     sync.RWMutex
	rules  *rbac.Policy
	unread int           // kinds of which nothing has been read yet
	loaded chan struct{} // closed when there are none
}

// newPolicy makes the view. It follows writes through this server from here on; run makes it follow the whole store.
func newPolicy(st registry.Stores) *policy {
	p := &policy{rules: rbac.NewPolicy(), loaded: make(chan struct{})}
	for _, plural := range []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"} {
		p.rests = append(p.rests, st[plural])
		p.subscribe(st[plural])
	}
	p.unread = len(p.rests)
	return p
}

// subscribe follows what is written through a kind's storage.
func (p *policy) subscribe(r *registry.REST) {
	put := func(obj runtime.Object) { p.put(r.Kind.Name, obj) }
	r.OnWrite.Add(onwrite.Calls{Created: put, Updated: put,
		Deleted: func(obj runtime.Object) { p.drop(r.Kind.Name, obj) }})
}

// run follows the store until ctx is done.
func (p *policy) run(ctx context.Context) {
	var kinds sync.WaitGroup
	for _, r := range p.rests {
		kinds.Go(func() { r.Follow(ctx, &policyKind{policy: p, kind: r.Kind.Name}) })
	}
	kinds.Wait()
}

func (p *policy) put(kind string, obj runtime.Object) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return // no API object has no metadata
	}
	key, version := rbac.Key{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()},
		registry.VersionOf(m.GetResourceVersion())
	p.mu.Lock()
	defer p.mu.Unlock()
	switch o := obj.(type) {
	case *rbacv1.Role:
		p.rules.PutRole(key, version, o.Rules)
	case *rbacv1.ClusterRole:
		p.rules.PutRole(key, version, o.Rules)
	case *rbacv1.RoleBinding:
		p.rules.PutBinding(key, version, o.RoleRef, o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		p.rules.PutBinding(key, version, o.RoleRef, o.Subjects)
	}
}

func (p *policy) drop(kind string, obj any) {
	if m, err := meta.Accessor(obj); err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.rules.Delete(rbac.Key{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()},
			registry.VersionOf(m.GetResourceVersion()))
	}
}

// reading gives the rules to look at, once everything that is stored is in them.
func (p *policy) reading(ctx context.Context, look func(*rbac.Policy)) error {
	select {
	case <-p.loaded:
	default:
		select {
		case <-p.loaded:
		case <-ctx.Done():
			return errors.New("the roles have not been read yet: try again")
		}
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	look(p.rules)
	return nil
}

// Authorize decides by the roles.
func (p *policy) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	request := rbac.Request{
		User: a.GetUser().GetName(), Groups: a.GetUser().GetGroups(), Verb: a.GetVerb(),
		Namespace: a.GetNamespace(), Group: a.GetAPIGroup(), Resource: a.GetResource(), Subresource: a.GetSubresource(),
		Name: a.GetName(), NonResource: !a.IsResourceRequest(), Path: a.GetPath(),
	}
	var decision rbac.Decision
	if err := p.reading(ctx, func(rules *rbac.Policy) { decision = rules.Decide(&request) }); err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	if decision.Allowed {
		return authorizer.DecisionAllow, decision.Reason, nil
	}
	return authorizer.DecisionNoOpinion, decision.Reason, nil
}

// rulesFor are a user's rights in a namespace; missing are the roles that do not exist, in words.
func (p *policy) rulesFor(ctx context.Context, u user.Info,
	namespace string) (rules []rbacv1.PolicyRule, missing []string, err error) {
	err = p.reading(ctx,
		func(all *rbac.Policy) { rules, missing = all.RulesFor(u.GetName(), u.GetGroups(), namespace) })
	return rules, missing, err
}

// rulesOf are those of a role that is referred to from a namespace.
func (p *policy) rulesOf(ctx context.Context, ref rbacv1.RoleRef,
	namespace string) (rules []rbacv1.PolicyRule, found bool, err error) {
	err = p.reading(ctx, func(all *rbac.Policy) { rules, found = all.RulesOf(ref, namespace) })
	return rules, found, err
}

// policyKind takes in what the store tells of one kind.
type policyKind struct {
	*policy
	kind string
	read bool
}

var _ registry.Follower = (*policyKind)(nil)

// Add implements cache.ReflectorStore.
func (k *policyKind) Add(obj any) error {
	o, ok := obj.(runtime.Object)
	if !ok {
		return nil // the reflector has checked the type
	}
	k.put(k.kind, o)
	return k.reachedObject(obj)
}

// Update implements cache.ReflectorStore.
func (k *policyKind) Update(obj any) error { return k.Add(obj) }

// Delete implements cache.ReflectorStore.
func (k *policyKind) Delete(obj any) error {
	k.drop(k.kind, obj)
	return k.reachedObject(obj)
}

func (k *policyKind) reachedObject(obj any) error {
	if m, err := meta.Accessor(obj); err == nil {
		return k.Bookmark(m.GetResourceVersion())
	}
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (k *policyKind) Bookmark(version string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rules.Reached(k.kind, registry.VersionOf(version))
	return nil
}

// Replace implements cache.ReflectorStore.
func (k *policyKind) Replace(list []any, version string) error {
	keys := make(map[rbac.Key]bool, len(list))
	for _, obj := range list {
		if m, err := meta.Accessor(obj); err == nil {
			keys[rbac.Key{Kind: k.kind, Namespace: m.GetNamespace(), Name: m.GetName()}] = true
			k.put(k.kind, obj.(runtime.Object))
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rules.Keep(k.kind, keys, registry.VersionOf(version))
	if !k.read {
		k.read = true
		if k.unread--; k.unread == 0 {
			close(k.loaded)
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (*policyKind) Resync() error { return nil }
