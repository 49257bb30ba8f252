// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/api/debugrun"
	"github.com/wherryproject/wherry/internal/features"
)

// eventTTL is how long events are kept, in seconds.
const eventTTL = 60 * 60

// kinds is the table of everything the server stores, in the order of discovery. A new kind is a row here and its rules.
func kinds(gates *features.Gates) []*kind {
	return slices.Concat(coreKinds(gates), plainKinds(), debugKinds(), policyKinds(), rbacKinds(), admissionKinds(), certificateKinds(), flowControlKinds())
}

func coreKinds(gates *features.Gates) []*kind {
	core := corev1.SchemeGroupVersion
	return []*kind{
		{gv: core, name: "Namespace", plural: "namespaces", singular: "namespace", short: []string{"ns"},
			object: of[corev1.Namespace], list: of[corev1.NamespaceList],
			rules: namespaceRules(), status: status(namespaceStatusRules()), fields: namespaceFields},
		{gv: core, name: "Node", plural: "nodes", singular: "node", short: []string{"no"},
			object: of[corev1.Node], list: of[corev1.NodeList],
			rules: nodeRules(), status: status(nodeStatusRules()), fields: nodeFields},
		{gv: core, name: "Pod", plural: "pods", singular: "pod", short: []string{"po"}, categories: []string{"all"}, namespaced: true,
			object: of[corev1.Pod], list: of[corev1.PodList], returnDeleted: true,
			rules: podRules(gates), status: status(podStatusRules()), fields: podFields},
		{gv: core, name: "PodTemplate", plural: "podtemplates", singular: "podtemplate", namespaced: true,
			object: of[corev1.PodTemplate], list: of[corev1.PodTemplateList],
			rules: podTemplateRules()},
		{gv: core, name: "Event", plural: "events", singular: "event", short: []string{"ev"}, namespaced: true,
			object: of[corev1.Event], list: of[corev1.EventList], ttl: eventTTL,
			rules: eventRules(), fields: eventFields},
		{gv: core, name: "ConfigMap", plural: "configmaps", singular: "configmap", short: []string{"cm"}, namespaced: true,
			object: of[corev1.ConfigMap], list: of[corev1.ConfigMapList],
			rules: configMapRules()},
		{gv: core, name: "Secret", plural: "secrets", singular: "secret", namespaced: true,
			object: of[corev1.Secret], list: of[corev1.SecretList],
			rules: secretRules(), fields: secretFields},
		{gv: core, name: "ServiceAccount", plural: "serviceaccounts", singular: "serviceaccount", short: []string{"sa"}, namespaced: true,
			object: of[corev1.ServiceAccount], list: of[corev1.ServiceAccountList], returnDeleted: true,
			rules: serviceAccountRules()},
		{gv: core, name: "Service", plural: "services", singular: "service", short: []string{"svc"}, categories: []string{"all"}, namespaced: true,
			object: of[corev1.Service], list: of[corev1.ServiceList], returnDeleted: true,
			rules: serviceRules(), status: status(serviceStatusRules()), fields: serviceFields},
		{gv: core, name: "Endpoints", plural: "endpoints", singular: "endpoints", short: []string{"ep"}, namespaced: true,
			object: of[corev1.Endpoints], list: of[corev1.EndpointsList],
			rules: endpointsRules()},
		{gv: core, name: "LimitRange", plural: "limitranges", singular: "limitrange", short: []string{"limits"}, namespaced: true,
			object: of[corev1.LimitRange], list: of[corev1.LimitRangeList],
			rules: limitRangeRules()},
		{gv: core, name: "ResourceQuota", plural: "resourcequotas", singular: "resourcequota", short: []string{"quota"}, namespaced: true,
			object: of[corev1.ResourceQuota], list: of[corev1.ResourceQuotaList], returnDeleted: true,
			rules: resourceQuotaRules(), status: status(resourceQuotaStatusRules())},
	}
}

func plainKinds() []*kind {
	return []*kind{
		{gv: discoveryv1.SchemeGroupVersion, name: "EndpointSlice", plural: "endpointslices", singular: "endpointslice", namespaced: true,
			object: of[discoveryv1.EndpointSlice], list: of[discoveryv1.EndpointSliceList],
			rules: endpointSliceRules()},
		{gv: coordinationv1.SchemeGroupVersion, name: "Lease", plural: "leases", singular: "lease", namespaced: true,
			object: of[coordinationv1.Lease], list: of[coordinationv1.LeaseList],
			rules: leaseRules()},
	}
}

func debugKinds() []*kind {
	return []*kind{
		{gv: debugrun.GroupVersion(), name: "DebugRun", plural: debugrun.Resource, singular: "debugrun", namespaced: true,
			object: of[debugrun.DebugRun], list: of[debugrun.DebugRunList],
			rules: debugRunRules(), status: status(debugRunStatusRules()), fields: debugRunFields},
	}
}

// of makes a new object of a type.
func of[T any, P interface {
	*T
	runtime.Object
}]() runtime.Object {
	return P(new(T))
}

func status(r rules) *rules { return &r }
