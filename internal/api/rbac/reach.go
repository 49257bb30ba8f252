// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// ReachesNode reports whether rules, given in a namespace that lets every pod in, amount to being root on the node:
// whoever may make a pod there, or write what pods are made from, may have a privileged one, and a debug container with
// the privileges of the profile sysadmin is as good.
func ReachesNode(rules []rbacv1.PolicyRule) bool {
	may := func(r Request) bool {
		return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return Allows(&rule, &r) })
	}
	ephemeral := func(verb string) bool {
		return may(Request{Verb: verb, Resource: "pods", Subresource: "ephemeralcontainers"})
	}
	templates := func(r Request) bool {
		return slices.ContainsFunc([]string{"create", "update", "patch"}, func(verb string) bool {
			r.Verb = verb
			return may(r)
		})
	}
	return may(Request{Verb: "create", Resource: "pods"}) || slices.ContainsFunc(podMakers(), templates) ||
		(ephemeral("update") || ephemeral("patch")) && may(Request{Verb: "use", Group: debugGroup,
			Resource: DebugProfiles, Name: "sysadmin"})
}

// podMakers are the kinds whose objects pods are made from.
func podMakers() []Request {
	return []Request{
		{Resource: "replicationcontrollers"},
		{Group: "apps", Resource: "deployments"}, {Group: "apps", Resource: "statefulsets"},
		{Group: "apps", Resource: "daemonsets"}, {Group: "apps", Resource: "replicasets"},
		{Group: "batch", Resource: "jobs"}, {Group: "batch", Resource: "cronjobs"},
	}
}
