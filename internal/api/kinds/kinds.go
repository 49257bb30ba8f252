// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/upstream"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/features"
)

// eventTTL is how long events are kept, in seconds.
const eventTTL = 60 * 60

// All is the table of everything the server stores, in the order of discovery. A new kind is a row here and its rules.
func All(gates *features.Gates) []*registry.Kind {
	return slices.Concat(coreKinds(gates), plainKinds(), debugKinds(), policyKinds(), rbacKinds(), admissionKinds(),
		certificateKinds(), flowControlKinds(), upstream.Kinds())
}

func coreKinds(gates *features.Gates) []*registry.Kind {
	core := corev1.SchemeGroupVersion
	return []*registry.Kind{
		{GV: core, Name: "Namespace", Plural: "namespaces", Singular: "namespace", Short: []string{"ns"},
			Object: registry.New[corev1.Namespace], List: registry.New[corev1.NamespaceList],
			Rules: namespaceRules(), Status: status(namespaceStatusRules()), Fields: namespaceFields},
		{GV: core, Name: "Node", Plural: "nodes", Singular: "node", Short: []string{"no"},
			Object: registry.New[corev1.Node], List: registry.New[corev1.NodeList],
			Rules: nodeRules(), Status: status(nodeStatusRules()), Fields: nodeFields},
		{GV: core, Name: "Pod", Plural: "pods", Singular: "pod", Short: []string{"po"}, Categories: []string{"all"},
			Namespaced: true, Object: registry.New[corev1.Pod], List: registry.New[corev1.PodList], ReturnDeleted: true,
			Rules: podRules(gates), Status: status(podStatusRules()), Fields: podFields},
		{GV: core, Name: "PodTemplate", Plural: "podtemplates", Singular: "podtemplate", Namespaced: true,
			Object: registry.New[corev1.PodTemplate], List: registry.New[corev1.PodTemplateList],
			Rules: podTemplateRules()},
		{GV: core, Name: "Event", Plural: "events", Singular: "event", Short: []string{"ev"}, Namespaced: true,
			Object: registry.New[corev1.Event], List: registry.New[corev1.EventList], TTL: eventTTL,
			Rules: eventRules(), Fields: eventFields},
		{GV: core, Name: "ConfigMap", Plural: "configmaps", Singular: "configmap", Short: []string{"cm"},
			Namespaced: true, Object: registry.New[corev1.ConfigMap], List: registry.New[corev1.ConfigMapList],
			Rules: configMapRules()},
		{GV: core, Name: "Secret", Plural: "secrets", Singular: "secret", Namespaced: true,
			Object: registry.New[corev1.Secret], List: registry.New[corev1.SecretList],
			Rules: secretRules(), Fields: secretFields},
		{GV: core, Name: "ServiceAccount", Plural: "serviceaccounts", Singular: "serviceaccount", Short: []string{"sa"},
			Namespaced: true, Object: registry.New[corev1.ServiceAccount],
			List: registry.New[corev1.ServiceAccountList], ReturnDeleted: true, Rules: serviceAccountRules()},
		{GV: core, Name: "Service", Plural: "services", Singular: "service", Short: []string{"svc"},
			Categories: []string{"all"}, Namespaced: true, Object: registry.New[corev1.Service],
			List: registry.New[corev1.ServiceList], ReturnDeleted: true, Rules: serviceRules(),
			Status: status(serviceStatusRules()), Fields: serviceFields},
		{GV: core, Name: "Endpoints", Plural: "endpoints", Singular: "endpoints", Short: []string{"ep"},
			Namespaced: true, Object: registry.New[corev1.Endpoints], List: registry.New[corev1.EndpointsList],
			Rules: endpointsRules()},
		{GV: core, Name: "LimitRange", Plural: "limitranges", Singular: "limitrange", Short: []string{"limits"},
			Namespaced: true, Object: registry.New[corev1.LimitRange], List: registry.New[corev1.LimitRangeList],
			Rules: limitRangeRules()},
		{GV: core, Name: "ResourceQuota", Plural: "resourcequotas", Singular: "resourcequota", Short: []string{"quota"},
			Namespaced: true, Object: registry.New[corev1.ResourceQuota], List: registry.New[corev1.ResourceQuotaList],
			ReturnDeleted: true, Rules: resourceQuotaRules(), Status: status(ResourceQuotaStatusRules())},
	}
}

func plainKinds() []*registry.Kind {
	return []*registry.Kind{
		{GV: discoveryv1.SchemeGroupVersion, Name: "EndpointSlice", Plural: "endpointslices", Singular: "endpointslice",
			Namespaced: true, Object: registry.New[discoveryv1.EndpointSlice],
			List: registry.New[discoveryv1.EndpointSliceList], Rules: endpointSliceRules()},
		{GV: coordinationv1.SchemeGroupVersion, Name: "Lease", Plural: "leases", Singular: "lease", Namespaced: true,
			Object: registry.New[coordinationv1.Lease], List: registry.New[coordinationv1.LeaseList],
			Rules: leaseRules()},
	}
}

func debugKinds() []*registry.Kind {
	return []*registry.Kind{
		{GV: debugrun.GroupVersion(), Name: "DebugRun", Plural: debugrun.Resource, Singular: "debugrun",
			Namespaced: true, Object: registry.New[debugrun.DebugRun], List: registry.New[debugrun.DebugRunList],
			Rules: debugRunRules(), Status: status(debugRunStatusRules()), Fields: debugRunFields},
	}
}

func status(r registry.Rules) *registry.Rules { return &r }

// Counted: what the server writes by itself is not held to quotas. Leases are counted: anybody who may edit can have
// large ones, and nothing else bounds them.
func Counted(k *registry.Kind) bool {
	return k.Namespaced && k.Plural != "events" && k.Plural != debugrun.Resource
}
