// SPDX-License-Identifier: Apache-2.0

package rbac

import rbacv1 "k8s.io/api/rbac/v1"

// Who the parts of the server are towards its API. A controller is the user of its role's name: not a service account,
// so that nobody who may make tokens in kube-system becomes one.
const (
	Scheduler   = "system:kube-scheduler"
	Controllers = "system:kube-controller-manager" // what controllers share: informers

	// NodeNetwork is the role of nodes that carry services and enforce policies (decision 062).
	NodeNetwork = "wherry:node-network"

	controllerPrefix = "system:controller:"

	NamespaceController      = controllerPrefix + "namespace-controller"
	ServiceAccountController = controllerPrefix + "service-account-controller"
	RootCAPublisher          = controllerPrefix + "root-ca-cert-publisher"
	NodeController           = controllerPrefix + "node-controller"
	PodGarbageCollector      = controllerPrefix + "pod-garbage-collector"
	RoleAggregation          = controllerPrefix + "clusterrole-aggregation-controller"
	CertificateController    = controllerPrefix + "certificate-controller"
	TokenCleaner             = controllerPrefix + "token-cleaner"
	DebugRunController       = controllerPrefix + "debugrun-controller"
	ServiceProxy             = controllerPrefix + "service-proxy"
	NamesController          = controllerPrefix + "names-controller"
	LoadBalancer             = controllerPrefix + "load-balancer"
	LocalVolumes             = controllerPrefix + "wherry-local-volumes"
	PodCertificates          = controllerPrefix + "pod-certificate-controller"
	TaintEviction            = controllerPrefix + "taint-eviction-controller"
	NodeIPAM                 = controllerPrefix + "node-ipam-controller"
)

func tellEvents() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		may("create", "patch", "update").to(core, "events"),
		may("create", "patch", "update").to(eventsGroup, "events"),
	}
}

// componentRoles: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#core-component-roles
func componentRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{
		clusterRole("system:kube-scheduler", append(tellEvents(),
			read().to(core, "namespaces", "nodes", "replicationcontrollers", "services"),
			append(read(), "patch", "update").to(core, "persistentvolumeclaims", "persistentvolumes"),
			read().to(storage, "csinodes", "storageclasses"),
			append(read(), "delete").to(core, "pods"),
			may("create").to(core, "bindings", "pods/binding"),
			may("patch", "update").to(core, "pods/status"),
			read().to(policyGroup, "poddisruptionbudgets"),
			read().to(scheduling, "priorityclasses"),
			may("create").to(coordination, "leases"),
			may("create").to(authnGroup, "tokenreviews"),
			may("create").to(authzGroup, "subjectaccessreviews"),
			named(may("get", "update").to(coordination, "leases"), "kube-scheduler"),
		)...),
		clusterRole("system:kube-controller-manager", append(tellEvents(),
			may("list", "watch").to("*", "*"),
			may("get").to(core, "configmaps", "namespaces", "serviceaccounts"),
			may("create").to(coordination, "leases"),
			named(may("get", "update").to(coordination, "leases"), "kube-controller-manager"),
			may("create").to(authnGroup, "tokenreviews"),
			may("create").to(authzGroup, "subjectaccessreviews"),
		)...),
		clusterRole("system:node", NodeRules()...),
		clusterRole(NodeNetwork,
			paths("/node-network", "/node-network/*"),
			may("list", "watch").to(core, "namespaces"),
			may("list", "watch").to(discovery, "endpointslices"),
			may("list", "watch").to(networking, "networkpolicies")),
	}
}

// NodeRules are what an agent does, as far as that is not a matter of which node: the node authorizer narrows them
// down.
func NodeRules() []rbacv1.PolicyRule {
	return append(tellEvents(),
		may("create").to(authnGroup, "tokenreviews"),
		may("create").to(authzGroup, "localsubjectaccessreviews", "subjectaccessreviews"),
		read().to(core, "services"),
		append(read(), "create").to(core, "nodes"),
		may("patch", "update").to(core, "nodes"),
		may("patch", "update").to(core, "nodes/status"),
		append(read(), "create", "delete").to(core, "pods"),
		may("patch", "update").to(core, "pods/status"),
		may("create").to(core, "pods/eviction"),
		read().to(core, "configmaps", "secrets"),
		read().to(core, "persistentvolumeclaims"), // each by its name: one that grows is noticed at once
		may("get").to(core, "persistentvolumes"),
		may("get", "patch", "update").to(core, "persistentvolumeclaims/status"),
		may("get").to(storage, "volumeattachments"),
		may("create", "delete", "get", "patch", "update").to(storage, "csinodes"),
		read().to(storage, "csidrivers"),
		may("get").to(core, "serviceaccounts"),
		may("create").to(core, "serviceaccounts/token"),
		may("create", "delete", "get", "patch", "update").to(coordination, "leases"),
		append(read(), "create").to(certGroup, "certificatesigningrequests", "podcertificaterequests"),
		read().to(certGroup, "clustertrustbundles"),
		read().to(nodeGroup, "runtimeclasses"),
		may("get").to(core, "endpoints"),
	)
}

// controllerRoles: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#controller-roles, those of the
// controllers that are here, with what ours do.
func controllerRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{
		clusterRole(NamespaceController,
			append(read(), "delete").to(core, "namespaces"),
			may("update").to(core, "namespaces/finalize", "namespaces/status"),
			may("delete", "deletecollection", "get", "list").to("*", "*")),
		clusterRole(ServiceAccountController, append(tellEvents(),
			append(read(), "create").to(core, "serviceaccounts"))...),
		clusterRole(RootCAPublisher, append(tellEvents(), append(read(), "create", "update").to(core,
			"configmaps"))...),
		clusterRole(NodeController, append(tellEvents(),
			append(read(), "delete", "patch", "update").to(core, "nodes"),
			may("patch", "update").to(core, "nodes/status", "pods/status"),
			read().to(coordination, "leases"), // by which agents show that they live
			append(read(), "delete").to(core, "pods"))...),
		clusterRole(NodeIPAM, append(tellEvents(),
			may("patch").to(core, "nodes"))...),
		clusterRole(TaintEviction, append(tellEvents(),
			read().to(core, "nodes"),
			append(read(), "delete").to(core, "pods"),
			may("patch").to(core, "pods/status"))...),
		clusterRole(PodGarbageCollector,
			append(read(), "delete").to(core, "pods"),
			may("get", "list").to(core, "nodes"),
			may("patch").to(core, "pods/status")),
		clusterRole(RoleAggregation,
			append(read(), "escalate", "patch", "update").to(rbacv1.GroupName, "clusterroles")),
		clusterRole(CertificateController, append(tellEvents(),
			append(read(), "delete").to(certGroup, "certificatesigningrequests"),
			may("update", "patch").to(certGroup, "certificatesigningrequests/approval",
				"certificatesigningrequests/status"),
			named(may("approve").to(certGroup, "signers"), "kubernetes.io/kube-apiserver-client-kubelet",
				"kubernetes.io/kubelet-serving"),
			named(may("sign").to(certGroup, "signers"), "kubernetes.io/kube-apiserver-client",
				"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving",
				"kubernetes.io/legacy-unknown"),
			may("create").to(authzGroup, "subjectaccessreviews"))...),
		clusterRole(PodCertificates,
			append(read(), "delete").to(certGroup, "podcertificaterequests"),
			may("update", "patch").to(certGroup, "podcertificaterequests/status"),
			may("get", "create", "update").to(certGroup, "clustertrustbundles"),
			named(may("attest").to(certGroup, "signers"), "wherry.dev/pod"),
			named(may("sign").to(certGroup, "signers"), "wherry.dev/*"), // those that there are not, to deny them
			may("get").to(core, "pods"),
			may("list").to(core, "services")),
		clusterRole(TokenCleaner, append(tellEvents(), append(read(), "delete").to(core, "secrets"))...),
		clusterRole(LoadBalancer, append(tellEvents(),
			may("update").to(core, "services/status"))...),
		clusterRole(LocalVolumes, append(tellEvents(),
			append(read(), "create", "delete", "patch", "update").to(core, "persistentvolumes"),
			read().to(core, "persistentvolumeclaims"),
			may("patch", "update").to(core, "persistentvolumeclaims/status"),
			append(read(), "create").to(storage, "storageclasses"))...),
		clusterRole(ServiceProxy, append(tellEvents(),
			may("list", "watch").to(core, "services", "nodes"),
			may("list", "watch").to(discovery, "endpointslices"))...),
		clusterRole(NamesController,
			may("create").to(core, "services"),
			may("create").to(discovery, "endpointslices"),
			named(may("get", "update", "delete").to(core, "services"), "kube-dns"),
			named(may("get", "update", "delete").to(discovery, "endpointslices"), "kube-dns")),
		clusterRole(DebugRunController,
			append(read(), "delete").to(debugGroup, "debugruns"),
			may("patch", "update").to(debugGroup, "debugruns/status"),
			may("get").to(core, "pods")),
	}
}
