// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// Kinds of objects that a Policy holds.
const (
	Role               = "Role"
	ClusterRole        = "ClusterRole"
	RoleBinding        = "RoleBinding"
	ClusterRoleBinding = "ClusterRoleBinding"
)

// Key names an object of a Policy; objects of the cluster have no namespace.
type Key struct{ Kind, Namespace, Name string }

// Policy holds roles and bindings and decides by them. What changes it must not run beside anything else of it; what
// only reads may run at the same time. The objects it is given are its own from then on, and what it returns must not
// be changed.
type Policy struct {
	roles    map[Key]*role
	bindings map[Key]*binding
	subjects map[subject][]*binding // in the order of their names, so that reasons are always the same
	gone     map[Key]uint64         // deleted objects, of which older news may still come
}

type role struct {
	version uint64
	rules   []rbacv1.PolicyRule
}

type binding struct {
	key      Key
	version  uint64
	ref      rbacv1.RoleRef
	subjects []rbacv1.Subject
}

// subject is a user or a group in a namespace, or in the cluster.
type subject struct {
	namespace string
	group     bool
	name      string
}

// NewPolicy makes a policy that allows nothing.
func NewPolicy() *Policy {
	return &Policy{roles: map[Key]*role{}, bindings: map[Key]*binding{}, subjects: map[subject][]*binding{},
		gone: map[Key]uint64{}}
}

// PutRole takes in a role (of either kind) as it is at a version. Older news than what is known is passed over.
func (p *Policy) PutRole(key Key, version uint64, rules []rbacv1.PolicyRule) {
	if have := p.roles[key]; have != nil && have.version >= version || p.gone[key] >= version {
		return
	}
	delete(p.gone, key)
	p.roles[key] = &role{version: version, rules: rules}
}

// PutBinding takes in a binding (of either kind) as it is at a version. Older news than what is known is passed over.
func (p *Policy) PutBinding(key Key, version uint64, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	have := p.bindings[key]
	if have != nil && have.version >= version || p.gone[key] >= version {
		return
	}
	delete(p.gone, key)
	p.unlink(have)
	b := &binding{key: key, version: version, ref: ref, subjects: subjects}
	p.bindings[key] = b
	p.link(b)
}

// Delete takes out an object that was deleted at a version. What was made after that stays.
func (p *Policy) Delete(key Key, version uint64) {
	p.gone[key] = max(p.gone[key], version)
	p.drop(key, version)
}

func (p *Policy) drop(key Key, version uint64) {
	if have := p.roles[key]; have != nil && have.version <= version {
		delete(p.roles, key)
	}
	if have := p.bindings[key]; have != nil && have.version <= version {
		p.unlink(have)
		delete(p.bindings, key)
	}
}

// Keep takes out every object of a kind that is not among the keys, which are all there were at a version.
func (p *Policy) Keep(kind string, keys map[Key]bool, version uint64) {
	for key := range p.roles {
		if key.Kind == kind && !keys[key] {
			p.drop(key, version)
		}
	}
	for key := range p.bindings {
		if key.Kind == kind && !keys[key] {
			p.drop(key, version)
		}
	}
	p.forget(kind, version)
}

// Reached says that all news of a kind up to a version has been taken in.
func (p *Policy) Reached(kind string, version uint64) {
	p.forget(kind, version)
}

func (p *Policy) forget(kind string, version uint64) {
	for key, at := range p.gone {
		if key.Kind == kind && at <= version {
			delete(p.gone, key)
		}
	}
}

func (p *Policy) link(b *binding) {
	for _, s := range subjectsOf(b) {
		list := p.subjects[s]
		at, found := slices.BinarySearchFunc(list, b, byName)
		if !found { // a subject named twice counts once
			p.subjects[s] = slices.Insert(list, at, b)
		}
	}
}

func (p *Policy) unlink(b *binding) {
	if b == nil {
		return
	}
	for _, s := range subjectsOf(b) {
		list := slices.DeleteFunc(p.subjects[s], func(other *binding) bool { return other == b })
		if len(list) == 0 {
			delete(p.subjects, s)
			continue
		}
		p.subjects[s] = list
	}
}

func byName(a, b *binding) int { return strings.Compare(a.key.Name, b.key.Name) }

func subjectsOf(b *binding) []subject {
	all := make([]subject, 0, len(b.subjects))
	for i := range b.subjects {
		s := &b.subjects[i]
		one := subject{namespace: b.key.Namespace, name: s.Name}
		switch s.Kind {
		case rbacv1.UserKind:
		case rbacv1.GroupKind:
			one.group = true
		case rbacv1.ServiceAccountKind:
			one.name = serviceaccount.MakeUsername(accountNamespace(b, s), s.Name)
		default:
			continue
		}
		all = append(all, one)
	}
	return all
}

// accountNamespace: an account without a namespace is one of the binding's own.
func accountNamespace(b *binding, s *rbacv1.Subject) string {
	if s.Namespace == "" {
		return b.key.Namespace
	}
	return s.Namespace
}

// roleOf is what a binding refers to.
func (p *Policy) roleOf(b *binding) (*role, error) {
	key := Key{Kind: b.ref.Kind, Name: b.ref.Name}
	if key.Kind == Role {
		key.Namespace = b.key.Namespace
	}
	r := p.roles[key]
	switch {
	case r != nil:
		return r, nil
	case key.Kind == Role:
		return nil, fmt.Errorf("role.rbac.authorization.k8s.io %q not found", key.Name)
	}
	return nil, fmt.Errorf("clusterrole.rbac.authorization.k8s.io %q not found", key.Name)
}
