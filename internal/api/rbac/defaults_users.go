// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// API groups that roles name.
const (
	core         = ""
	authnGroup   = "authentication.k8s.io"
	authzGroup   = "authorization.k8s.io"
	certGroup    = "certificates.k8s.io"
	coordination = "coordination.k8s.io"
	discovery    = "discovery.k8s.io"
	eventsGroup  = "events.k8s.io"
	appsGroup    = "apps"
	autoscaling  = "autoscaling"
	batchGroup   = "batch"
	networking   = "networking.k8s.io"
	metricsGroup = "metrics.k8s.io"
	nodeGroup    = "node.k8s.io"
	policyGroup  = "policy"
	resources    = "resource.k8s.io"
	scheduling   = "scheduling.k8s.io"
	storage      = "storage.k8s.io"
)

// userRoles are those that an administrator gives to people: in a namespace by a RoleBinding, or everywhere by a
// ClusterRoleBinding. https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles
func userRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{
		clusterRole("cluster-admin", Everything()...),
		aggregated("admin"),
		aggregated("edit", "admin"),
		aggregated("view", "edit"),
		joins(clusterRole("system:aggregate-to-admin",
			may("create").to(authzGroup, "localsubjectaccessreviews"),
			append(read(), write()...).to(rbacv1.GroupName, "roles", "rolebindings"),
		), "admin"),
		joins(clusterRole("system:aggregate-to-edit", editRules()...), "edit"),
		joins(clusterRole("system:aggregate-to-view", viewRules()...), "view"),
		joins(clusterRole("system:aggregated-metrics-reader", read().to(metricsGroup, "pods", "nodes")), "admin",
			"edit", "view"),
		joins(clusterRole(DebugRole, debugRules()...), DebugPrivilegedRole),
		aggregated(DebugPrivilegedRole),
		joins(clusterRole("system:aggregate-to-"+DebugPrivilegedRole,
			named(may("use").to(debugGroup, DebugProfiles), podspec.PrivilegedProfiles()...)),
			DebugPrivilegedRole),
	}
}

// viewRules read what is in a namespace, but no secrets, which would give away the rights of the accounts whose tokens
// they hold, nor roles and their bindings.
func viewRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		read().to(core, "configmaps", "endpoints", "persistentvolumeclaims", "persistentvolumeclaims/status", "pods",
			"replicationcontrollers", "replicationcontrollers/scale", "serviceaccounts", "services", "services/status"),
		read().to(core, "bindings", "events", "limitranges", "namespaces/status", "pods/log", "pods/status",
			"replicationcontrollers/status", "resourcequotas", "resourcequotas/status"),
		read().to(appsGroup, "controllerrevisions", "daemonsets", "daemonsets/status", "deployments",
			"deployments/scale", "deployments/status", "replicasets", "replicasets/scale", "replicasets/status",
			"statefulsets", "statefulsets/scale", "statefulsets/status"),
		read().to(autoscaling, "horizontalpodautoscalers", "horizontalpodautoscalers/status"),
		read().to(batchGroup, "cronjobs", "cronjobs/status", "jobs", "jobs/status"),
		read().to(policyGroup, "poddisruptionbudgets", "poddisruptionbudgets/status"),
		read().to(networking, "ingresses", "ingresses/status", "networkpolicies"),
		read().to(resources, "resourceclaims", "resourceclaims/status", "resourceclaimtemplates"),
		read().to(core, "namespaces"), // so that the namespace itself can be looked at
		read().to(discovery, "endpointslices"),
		read().to(eventsGroup, "events"),
		may("get").to(core, "pods/timeline"),
		may("get").to(core, "pods/debug"), // who entered the pod, as its condition and events tell too
		read().to(debugGroup, "debugruns"),
	}
}

// editRules write it too. Whoever may start pods can use any account and secret of the namespace, so these can be read
// and used. Endpoints cannot be written, since that reaches into other namespaces (CVE-2021-25740), and ephemeral
// containers are a right of their own (docs/decisions).
func editRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		read().to(core, "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy"),
		may("impersonate").to(core, "serviceaccounts"),
		write().to(core, "pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"),
		may("create").to(core, "pods/eviction"),
		write().to(core, "configmaps", "events", "persistentvolumeclaims", "replicationcontrollers",
			"replicationcontrollers/scale", "secrets", "serviceaccounts", "services", "services/proxy"),
		may("create").to(core, "serviceaccounts/token"),
		write().to(appsGroup, "daemonsets", "deployments", "deployments/rollback", "deployments/scale", "replicasets",
			"replicasets/scale", "statefulsets", "statefulsets/scale"),
		write().to(autoscaling, "horizontalpodautoscalers"),
		write().to(batchGroup, "cronjobs", "jobs"),
		write().to(policyGroup, "poddisruptionbudgets"),
		write().to(networking, "ingresses", "networkpolicies"),
		write().to(resources, "resourceclaims", "resourceclaimtemplates"),
		append(read(), write()...).to(coordination, "leases"),
	}
}

// debugRules are what `kubectl debug`, `wherry debug` and image exec need, no more.
func debugRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		read().to(core, "pods", "pods/log", "events"),
		may("create", "get").to(core, "pods/attach", "pods/exec", "pods/portforward"),
		may("get", "patch", "update").to(core, "pods/ephemeralcontainers"),
		may("create").to(debugGroup, ImageExecs),
		may("get", "delete").to(core, "pods/debug"),
		may("get").to(core, "pods/timeline"),
		read().to(debugGroup, "debugruns"),
	}
}
