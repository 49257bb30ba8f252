// SPDX-License-Identifier: Apache-2.0

package ranges

import (
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/apis/networking"
)

// manager is who keeps the IPAddress objects of services, by the label that Kubernetes' allocator gives them.
const manager = "ipallocator.k8s.io"

// Step is what is to be done about the IPAddress object of an address.
type Step int

// The steps. Remake is a deletion, and then a creation: what the object refers to cannot be changed.
const (
	Nothing Step = iota
	Make
	Remove
	Remake
)

// Next decides it: owner is the service that has the address, the zero value if none has; have is the object, nil if
// there is none. An object of somebody else for an address that no service has is left alone.
func Next(owner types.NamespacedName, have *networking.IPAddress) Step {
	wanted := owner != (types.NamespacedName{})
	switch {
	case have == nil && wanted:
		return Make
	case have == nil || have.DeletionTimestamp != nil: // somebody's finalizer holds it; its end is told
		return Nothing
	case wanted && !IsOf(have, owner):
		return Remake
	case !wanted && have.Labels[networkingv1.LabelManagedBy] == manager:
		return Remove
	}
	return Nothing
}

// IsOf reports whether an object is that of a service's address, with all that Kubernetes' allocator gives it.
func IsOf(o *networking.IPAddress, owner types.NamespacedName) bool {
	a, err := netip.ParseAddr(o.Name)
	if err != nil || o.Spec.ParentRef == nil || *o.Spec.ParentRef != parent(owner) {
		return false
	}
	for key, value := range labels(a) {
		if o.Labels[key] != value {
			return false
		}
	}
	return true
}

// Object is the IPAddress of a service's address.
func Object(a netip.Addr, owner types.NamespacedName) *networking.IPAddress {
	ref := parent(owner)
	return &networking.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: a.String(), Labels: maps.Clone(labels(a))},
		Spec:       networking.IPAddressSpec{ParentRef: &ref},
	}
}

func parent(owner types.NamespacedName) networking.ParentReference {
	return networking.ParentReference{Resource: "services", Namespace: owner.Namespace, Name: owner.Name}
}

func labels(a netip.Addr) map[string]string {
	family := corev1.IPv4Protocol
	if a.Is6() {
		family = corev1.IPv6Protocol
	}
	return map[string]string{networkingv1.LabelIPAddressFamily: string(family), networkingv1.LabelManagedBy: manager}
}
