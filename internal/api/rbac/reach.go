// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// ReachesNode tells whether rules, given in a namespace that lets every pod in, amount to being root on the node:
// whoever may make a pod there may make a privileged one, and a debug container with the privileges of the profile
// sysadmin is as good.
func ReachesNode(rules []rbacv1.PolicyRule) bool {
	may := func(r Request) bool {
		return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return Allows(&rule, &r) })
	}
	ephemeral := func(verb string) bool {
		return may(Request{Verb: verb, Resource: "pods", Subresource: "ephemeralcontainers"})
	}
	return may(Request{Verb: "create", Resource: "pods"}) ||
		(ephemeral("update") || ephemeral("patch")) && may(Request{Verb: "use", Group: debugGroup,
			Resource: DebugProfiles, Name: "sysadmin"})
}
