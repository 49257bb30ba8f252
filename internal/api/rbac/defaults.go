// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names of what is particular to Wherry.
const (
	// DebugRole is the role of those who may debug pods: ephemeral containers and image exec, beside exec, attach and
	// the like.
	DebugRole = "debug"
	// DebugPrivilegedRole is the role of those who may debug with every profile, also those that reach the node.
	DebugPrivilegedRole = "debug-privileged"
	// DebugProfiles is the resource (in the API group of debug runs) whose use, under the name of a profile above
	// general, is the right to that profile. It holds no objects.
	DebugProfiles = "debugprofiles"
	// ImageExecs is the resource (in the API group of debug runs) whose creation is image exec's own right. It holds no
	// objects.
	ImageExecs = "imageexecs"
	// ExternalIPs is the subresource of services whose use is the right to name external addresses of them in a
	// namespace that is held to a Pod Security level. It holds no objects.
	ExternalIPs = "externalips"

	debugGroup = "debug.wherry.dev"

	aggregateTo    = "rbac.authorization.k8s.io/aggregate-to-"
	bootstrapLabel = "kubernetes.io/bootstrapping"
)

// Defaults are the roles and bindings that every server has. They are made and mended at each start.
type Defaults struct {
	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
}

// NewDefaults makes the list; kubeletClient is the user that the API server is towards the nodes' own APIs. Aggregated
// roles have their rules already.
func NewDefaults(kubeletClient string) Defaults {
	d := Defaults{}
	for _, part := range [][]rbacv1.ClusterRole{userRoles(), systemRoles(), componentRoles(), controllerRoles(),
		kubernetesRoles()} {
		d.ClusterRoles = append(d.ClusterRoles, part...)
	}
	d.ClusterRoleBindings = bindings(kubeletClient)
	d.aggregate()
	for i := range d.ClusterRoles {
		mark(&d.ClusterRoles[i].ObjectMeta)
	}
	for i := range d.ClusterRoleBindings {
		mark(&d.ClusterRoleBindings[i].ObjectMeta)
	}
	return d
}

// aggregate fills in what the aggregation controller would, in as many rounds as roles stand on one another.
func (d *Defaults) aggregate() {
	all := make([]*rbacv1.ClusterRole, len(d.ClusterRoles))
	for i := range d.ClusterRoles {
		all[i] = &d.ClusterRoles[i]
	}
	for again := true; again; {
		again = false
		for _, role := range all {
			if rules, err := Aggregate(role, all); err == nil && len(rules) != len(role.Rules) {
				role.Rules, again = rules, true
			}
		}
	}
}

func mark(m *metav1.ObjectMeta) {
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	m.Labels[bootstrapLabel] = "rbac-defaults"
	m.Annotations = map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}
}

// verbs are what a rule allows to do.
type verbs []string

func read() verbs  { return verbs{"get", "list", "watch"} }
func write() verbs { return verbs{"create", "delete", "deletecollection", "patch", "update"} }
func may(v ...string) verbs {
	return v
}

// to makes a rule of verbs for resources of an API group.
func (v verbs) to(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: v, APIGroups: []string{group}, Resources: resources}
}

func named(r rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	r.ResourceNames = names
	return r
}

func paths(urls ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: urls}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

// joins has a role's rules added to others: admin, edit, view.
func joins(r rbacv1.ClusterRole, others ...string) rbacv1.ClusterRole {
	r.Labels = map[string]string{}
	for _, other := range others {
		r.Labels[aggregateTo+other] = "true"
	}
	return r
}

// aggregated makes a role of others.
func aggregated(name string, others ...string) rbacv1.ClusterRole {
	r := joins(clusterRole(name), others...)
	r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
		{MatchLabels: map[string]string{aggregateTo + name: "true"}}}}
	return r
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
}

func bind(name, role string, subjects ...rbacv1.Subject) rbacv1.ClusterRoleBinding {
	return rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: ClusterRole, Name: role},
		Subjects:   slices.Clone(subjects),
	}
}
