// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Decision is the answer to a request.
type Decision struct {
	Allowed bool
	// Reason says by what it is allowed; or, when it is not, which roles that bindings of the user name do not exist.
	Reason string
}

// Decide reports whether the request is allowed: by any binding of the cluster, or of the request's namespace, to the
// user or one of the groups.
func (p *Policy) Decide(r *Request) Decision {
	var by *binding
	var missing []string
	p.each(r.User, r.Groups, r.Namespace, func(b *binding, role *role, err error) bool {
		if err != nil {
			missing = append(missing, err.Error())
			return true
		}
		for i := range role.rules {
			if Allows(&role.rules[i], r) {
				by = b
				return false
			}
		}
		return true
	})
	switch {
	case by != nil:
		return Decision{Allowed: true, Reason: because(by, r.User, r.Groups)}
	case len(missing) > 0:
		slices.Sort(missing)
		return Decision{Reason: "RBAC: " + listed(slices.Compact(missing))}
	}
	return Decision{}
}

func listed(items []string) string {
	if len(items) == 1 {
		return items[0]
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// each calls visit for the bindings that concern a user until it returns false.
func (p *Policy) each(user string, groups []string, namespace string, visit func(*binding, *role, error) bool) {
	within := func(namespace string) bool {
		for i := -1; i < len(groups); i++ {
			s := subject{namespace: namespace, name: user}
			if i >= 0 {
				s = subject{namespace: namespace, group: true, name: groups[i]}
			}
			for _, b := range p.subjects[s] {
				role, err := p.roleOf(b)
				if !visit(b, role, err) {
					return false
				}
			}
		}
		return true
	}
	if within("") && namespace != "" {
		within(namespace)
	}
}

// because names the binding, its role, and which of its subjects the user is.
func because(b *binding, user string, groups []string) string {
	whom := ""
	for i := range b.subjects {
		s := &b.subjects[i]
		switch {
		case s.Kind == rbacv1.ServiceAccountKind && user == subjectsOf(&binding{key: b.key,
			subjects: b.subjects[i : i+1]})[0].name:
			whom = fmt.Sprintf("ServiceAccount %q", s.Name+"/"+accountNamespace(b, s))
		case s.Kind == rbacv1.UserKind && s.Name == user, s.Kind == rbacv1.GroupKind && slices.Contains(groups, s.Name):
			whom = fmt.Sprintf("%s %q", s.Kind, s.Name)
		}
		if whom != "" {
			break
		}
	}
	name := b.key.Name
	if b.key.Namespace != "" {
		name += "/" + b.key.Namespace
	}
	return fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s", b.key.Kind, name, b.ref.Kind, b.ref.Name, whom)
}

// RulesFor lists the rules that a user has in a namespace (of the cluster's bindings, and of the namespace's if it is
// not empty), and the roles that are missing, in words.
func (p *Policy) RulesFor(user string, groups []string,
	namespace string) (rules []rbacv1.PolicyRule, missing []string) {
	p.each(user, groups, namespace, func(_ *binding, role *role, err error) bool {
		if err != nil {
			missing = append(missing, err.Error())
		} else {
			rules = append(rules, role.rules...)
		}
		return true
	})
	return rules, missing
}

// RulesOf are those of the role that a binding in a namespace (empty: of the cluster) refers to.
func (p *Policy) RulesOf(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, bool) {
	role, err := p.roleOf(&binding{key: Key{Namespace: namespace}, ref: ref})
	if err != nil {
		return nil, false
	}
	return role.rules, true
}
