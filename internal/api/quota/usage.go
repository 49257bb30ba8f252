// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/podspec"
)

const (
	countPrefix    = "count/"
	requestsPrefix = corev1.DefaultResourceRequestsPrefix
	limitsPrefix   = "limits."
	// classSuffix stands between a storage class and what of its claims is counted.
	classSuffix = ".storageclass.storage.k8s.io/"
)

// StoredBytes is the entry of a quota for what a namespace's objects take in the store together. It counts every kind
// that has a count/ entry but quotas themselves, whose own status it changes.
const StoredBytes corev1.ResourceName = "wherry.dev/stored-bytes"

// Item is an object that quotas may count.
type Item struct {
	Resource schema.GroupResource
	Object   runtime.Object
	// Visits is how many image execs there are in a pod. In one that has ended each has a sandbox of its own, with the
	// pod's limits; in one that runs they take nothing that the pod does not have.
	Visits int64
}

// IsCount reports whether an entry of a quota is about the number of objects of some resource: count/RESOURCE.GROUP.
func IsCount(name corev1.ResourceName) bool { return strings.HasPrefix(string(name), countPrefix) }

// Tracks reports whether objects of a resource can take anything of the named entry of a quota.
func Tracks(r schema.GroupResource, name corev1.ResourceName) bool {
	if IsCount(name) {
		return string(name) == countPrefix+r.String()
	}
	if name == StoredBytes {
		return r != corev1.Resource("resourcequotas")
	}
	switch r {
	case corev1.Resource("pods"):
		return name == corev1.ResourcePods || isCompute(name)
	case corev1.Resource("services"):
		return name == corev1.ResourceServices || name == corev1.ResourceServicesNodePorts ||
			name == corev1.ResourceServicesLoadBalancers
	case corev1.Resource("persistentvolumeclaims"):
		_, of, byClass := strings.Cut(string(name), classSuffix)
		return name == corev1.ResourcePersistentVolumeClaims || name == corev1.ResourceRequestsStorage ||
			byClass && Tracks(r, corev1.ResourceName(of))
	case corev1.Resource("configmaps"), corev1.Resource("secrets"), corev1.Resource("resourcequotas"),
		corev1.Resource("replicationcontrollers"):
		return string(name) == r.Resource
	}
	return false
}

func isCompute(name corev1.ResourceName) bool {
	if name == corev1.ResourceRequestsStorage {
		return false
	}
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	s := string(name)
	return strings.HasPrefix(s, requestsPrefix) || isLimit(name) ||
		strings.HasPrefix(s, corev1.ResourceHugePagesPrefix)
}

// isLimit reports whether an entry is about limits. Extended resources and huge pages cannot be overcommitted: what is
// requested of them is their limit, and quotas have entries for requests of them only.
// https://kubernetes.io/docs/concepts/policy/resource-quotas/#resource-quota-for-extended-resources
func isLimit(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return true
	}
	return false
}

// Usage is what one object takes, under every name a quota may have for it.
func Usage(i Item) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	used := corev1.ResourceList{corev1.ResourceName(countPrefix + i.Resource.String()): one}
	if Tracks(i.Resource, StoredBytes) {
		used[StoredBytes] = *resource.NewQuantity(size(i.Object), resource.BinarySI)
	}
	switch obj := i.Object.(type) {
	case *corev1.Pod:
		sandboxes := int64(1)
		if ended(obj) {
			sandboxes = i.Visits
		}
		if sandboxes == 0 {
			return used
		}
		used[corev1.ResourcePods] = times(one, sandboxes)
		for name, q := range podspec.EffectiveRequests(obj) {
			q = times(q, sandboxes)
			used[requestsPrefix+name] = q
			if isCompute(name) {
				used[name] = q
			}
		}
		for name, q := range podspec.EffectiveLimits(obj) {
			if isLimit(limitsPrefix + name) {
				used[limitsPrefix+name] = times(q, sandboxes)
			}
		}
	case *corev1.Service:
		used[corev1.ResourceServices] = one
		balanced := obj.Spec.Type == corev1.ServiceTypeLoadBalancer
		if balanced {
			used[corev1.ResourceServicesLoadBalancers] = one
		}
		if obj.Spec.Type == corev1.ServiceTypeNodePort || balanced {
			used[corev1.ResourceServicesNodePorts] = *resource.NewQuantity(nodePorts(obj), resource.DecimalSI)
		}
	case *corev1.PersistentVolumeClaim:
		addClaim(used, obj)
	default:
		if name := corev1.ResourceName(i.Resource.Resource); Tracks(i.Resource, name) {
			used[name] = one
		}
	}
	return used
}

// nodePorts is how many of its ports a service has, or will have, on the nodes; without allocation those that it names.
func nodePorts(s *corev1.Service) (n int64) {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer || ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true) {
		return int64(len(s.Spec.Ports))
	}
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			n++
		}
	}
	return n
}

// addClaim adds what a claim takes: of the namespace, and of its storage class.
func addClaim(used corev1.ResourceList, c *corev1.PersistentVolumeClaim) {
	takes := corev1.ResourceList{
		corev1.ResourcePersistentVolumeClaims: *resource.NewQuantity(1, resource.DecimalSI)}
	if size, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
		if has := c.Status.AllocatedResources[corev1.ResourceStorage]; has.Cmp(size) > 0 {
			size = has
		}
		size = size.DeepCopy()
		size.RoundUp(0)
		takes[corev1.ResourceRequestsStorage] = size
	}
	class := storagehelpers.GetPersistentVolumeClaimClass(c)
	for name, q := range takes {
		used[name] = q
		if class != "" {
			used[corev1.ResourceName(class+classSuffix)+name] = q
		}
	}
}

func times(q resource.Quantity, n int64) resource.Quantity {
	q = q.DeepCopy()
	q.Mul(n) // where that is too much for 64 bits, it goes on with more
	return q
}

// size is how many bytes an object takes in the store: all kinds of Kubernetes are stored as protocol
// buffers.
func size(obj runtime.Object) int64 {
	if o, ok := obj.(interface{ Size() int }); ok {
		return int64(o.Size())
	}
	if o, ok := obj.(*unstructured.Unstructured); ok { // a custom resource, which is stored as JSON
		if text, err := o.MarshalJSON(); err == nil {
			return int64(len(text))
		}
	}
	return 0
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
