// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/registry/rest"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/resolver"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
)

type update = map[string]rest.RESTUpdateStrategy

// upstream are Kubernetes' own, by kind. Those who write policies have every right.
func upstream() map[schema.GroupKind]strategies {
	all := authorizerfactory.NewAlwaysAllowAuthorizer()
	find := resolver.ResourceResolverFunc(func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		return resource, nil
	})
	vap := validatingadmissionpolicy.NewStrategy(all, find)
	vapb := validatingadmissionpolicybinding.NewStrategy(all, nil, find)
	mapol := mutatingadmissionpolicy.NewStrategy(all, find)
	mapb := mutatingadmissionpolicybinding.NewStrategy(all, nil, find)
	const reg, core, rbac, flow = "admissionregistration.k8s.io", "", "rbac.authorization.k8s.io", "flowcontrol.apiserver.k8s.io"
	return map[schema.GroupKind]strategies{
		{Group: core, Kind: "Pod"}: {pod.Strategy, update{"": pod.Strategy, "status": pod.StatusStrategy,
			"ephemeralcontainers": pod.EphemeralContainersStrategy, "resize": pod.ResizeStrategy}},
		{Group: core, Kind: "PodTemplate"}:    {podtemplate.Strategy, update{"": podtemplate.Strategy}},
		{Group: core, Kind: "Namespace"}:      {namespace.Strategy, update{"": namespace.Strategy, "status": namespace.StatusStrategy}},
		{Group: core, Kind: "Node"}:           {node.Strategy, update{"": node.Strategy, "status": node.StatusStrategy}},
		{Group: core, Kind: "Event"}:          {event.Strategy, update{"": event.Strategy}},
		{Group: core, Kind: "ConfigMap"}:      {configmap.Strategy, update{"": configmap.Strategy}},
		{Group: core, Kind: "Secret"}:         {secret.Strategy, update{"": secret.Strategy}},
		{Group: core, Kind: "ServiceAccount"}: {serviceaccount.Strategy, update{"": serviceaccount.Strategy}},
		{Group: core, Kind: "Service"}:        {service.Strategy, update{"": service.Strategy, "status": service.StatusStrategy}},
		{Group: core, Kind: "Endpoints"}:      {endpoint.Strategy, update{"": endpoint.Strategy}},
		{Group: core, Kind: "LimitRange"}:     {limitrange.Strategy, update{"": limitrange.Strategy}},
		{Group: core, Kind: "ResourceQuota"}: {resourcequota.Strategy, update{"": resourcequota.Strategy,
			"status": resourcequota.StatusStrategy}},
		{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:   {endpointslice.Strategy, update{"": endpointslice.Strategy}},
		{Group: "coordination.k8s.io", Kind: "Lease"}:        {lease.Strategy, update{"": lease.Strategy}},
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:  {priorityclass.Strategy, update{"": priorityclass.Strategy}},
		{Group: "node.k8s.io", Kind: "RuntimeClass"}:         {runtimeclass.Strategy, update{"": runtimeclass.Strategy}},
		{Group: rbac, Kind: "Role"}:                          {role.Strategy, update{"": role.Strategy}},
		{Group: rbac, Kind: "ClusterRole"}:                   {clusterrole.Strategy, update{"": clusterrole.Strategy}},
		{Group: rbac, Kind: "RoleBinding"}:                   {rolebinding.Strategy, update{"": rolebinding.Strategy}},
		{Group: rbac, Kind: "ClusterRoleBinding"}:            {clusterrolebinding.Strategy, update{"": clusterrolebinding.Strategy}},
		{Group: reg, Kind: "MutatingWebhookConfiguration"}:   {mutatingwebhookconfiguration.Strategy, update{"": mutatingwebhookconfiguration.Strategy}},
		{Group: reg, Kind: "ValidatingWebhookConfiguration"}: {validatingwebhookconfiguration.Strategy, update{"": validatingwebhookconfiguration.Strategy}},
		{Group: reg, Kind: "ValidatingAdmissionPolicy"}: {vap, update{"": vap,
			"status": validatingadmissionpolicy.NewStatusStrategy(vap)}},
		{Group: reg, Kind: "ValidatingAdmissionPolicyBinding"}: {vapb, update{"": vapb}},
		{Group: reg, Kind: "MutatingAdmissionPolicy"}:          {mapol, update{"": mapol}},
		{Group: reg, Kind: "MutatingAdmissionPolicyBinding"}:   {mapb, update{"": mapb}},
		{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {certificates.Strategy, update{"": certificates.Strategy,
			"status": certificates.StatusStrategy, "approval": certificates.ApprovalStrategy}},
		{Group: flow, Kind: "FlowSchema"}: {flowschema.Strategy, update{"": flowschema.Strategy, "status": flowschema.StatusStrategy}},
		{Group: flow, Kind: "PriorityLevelConfiguration"}: {prioritylevelconfiguration.Strategy, update{
			"": prioritylevelconfiguration.Strategy, "status": prioritylevelconfiguration.StatusStrategy}},
	}
}
