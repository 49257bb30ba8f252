// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	authnuser "k8s.io/apiserver/pkg/authentication/user"
)

// systemRoles are about the server itself: what everybody may see of it, and what programs around it are given.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#discovery-roles and #other-component-roles
func systemRoles() []rbacv1.ClusterRole {
	health := []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}
	roles := []rbacv1.ClusterRole{
		clusterRole("system:basic-user",
			may("create").to(authzGroup, "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
			may("create").to(authnGroup, "selfsubjectreviews")),
		clusterRole("system:discovery",
			paths(append([]string{"/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"}, health...)...)),
		clusterRole("system:public-info-viewer", paths(health...)),
		clusterRole("system:monitoring",
			paths("/metrics", "/metrics/slis", "/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*")),
		clusterRole("system:service-account-issuer-discovery",
			paths("/.well-known/openid-configuration", "/.well-known/openid-configuration/", "/openid/v1/jwks",
				"/openid/v1/jwks/")),
		clusterRole("system:cluster-trust-bundle-discovery", read().to(certGroup, "clustertrustbundles")),
		clusterRole("system:auth-delegator",
			may("create").to(authnGroup, "tokenreviews"),
			may("create").to(authzGroup, "subjectaccessreviews")),
		clusterRole("system:kubelet-api-admin",
			append(read(), "proxy").to(core, "nodes"),
			may("*").to(core, "nodes/configz", "nodes/healthz", "nodes/log", "nodes/metrics", "nodes/pods",
				"nodes/proxy", "nodes/stats")),
		clusterRole("system:node-bootstrapper", may("create", "get", "list", "watch").to(certGroup,
			"certificatesigningrequests")),
		clusterRole("system:certificates.k8s.io:certificatesigningrequests:nodeclient",
			may("create").to(certGroup, "certificatesigningrequests/nodeclient")),
		clusterRole("system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
			may("create").to(certGroup, "certificatesigningrequests/selfnodeclient")),
	}
	for name, signer := range map[string]string{
		"kube-apiserver-client":         "kubernetes.io/kube-apiserver-client",
		"kube-apiserver-client-kubelet": "kubernetes.io/kube-apiserver-client-kubelet",
		"kubelet-serving":               "kubernetes.io/kubelet-serving",
		"legacy-unknown":                "kubernetes.io/legacy-unknown",
	} {
		roles = append(roles, clusterRole("system:certificates.k8s.io:"+name+"-approver",
			named(may("approve").to(certGroup, "signers"), signer)))
	}
	return roles
}

// bindings of the default roles. A node's rights come from the node authorizer; system:node is there for those who bind
// it.
func bindings(kubeletClient string) []rbacv1.ClusterRoleBinding {
	all := []rbacv1.ClusterRoleBinding{
		bind("cluster-admin", "cluster-admin", group(authnuser.SystemPrivilegedGroup)),
		bind("system:basic-user", "system:basic-user", group(authnuser.AllAuthenticated)),
		bind("system:discovery", "system:discovery", group(authnuser.AllAuthenticated)),
		bind("system:public-info-viewer", "system:public-info-viewer", group(authnuser.AllAuthenticated),
			group(authnuser.AllUnauthenticated)),
		bind(NodeNetwork, NodeNetwork, group(authnuser.NodesGroup)),
		bind("system:monitoring", "system:monitoring", group(authnuser.MonitoringGroup)),
		bind("system:service-account-issuer-discovery", "system:service-account-issuer-discovery",
			group("system:serviceaccounts")),
		bind("system:cluster-trust-bundle-discovery", "system:cluster-trust-bundle-discovery",
			group("system:serviceaccounts")),
		bind("system:kube-scheduler", "system:kube-scheduler", user(Scheduler)),
		bind("system:kube-controller-manager", "system:kube-controller-manager", user(Controllers)),
		bind("system:kubelet-api-admin", "system:kubelet-api-admin", user(kubeletClient)),
		// A bootstrap token is there to let an agent join, so that every one of them may ask for a node's certificate.
		bind("wherry:node-bootstrapper", "system:node-bootstrapper", group("system:bootstrappers")),
	}
	for _, role := range append(controllerRoles(), kubernetesRoles()...) {
		all = append(all, bind(role.Name, role.Name, user(role.Name)))
	}
	return all
}
