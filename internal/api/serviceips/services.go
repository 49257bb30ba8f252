// SPDX-License-Identifier: Apache-2.0

package serviceips

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/onwrite"
)

// Attach makes a service store allocate and free addresses.
func (a *Addresses) Attach(services *onwrite.Hooks) {
	services.Add(onwrite.Calls{
		Creating: func(obj runtime.Object, dry bool) (onwrite.Finish, error) {
			return a.assign(obj.(*corev1.Service), dry)
		},
		Created: func(obj runtime.Object) {
			if ip, ok := addressOf(obj.(*corev1.Service)); ok {
				a.settled(ip)
			}
		},
		Updating: func(obj, old runtime.Object, dry bool) (onwrite.Finish, error) {
			s, before := obj.(*corev1.Service), old.(*corev1.Service)
			if HasAddress(before) == HasAddress(s) {
				return nil, a.changes(s, before)
			}
			finish, err := a.assign(s, dry)
			if err == nil && !dry {
				a.moves(s, before)
			}
			return finish, err
		},
		Updated: func(obj runtime.Object) { a.hasMoved(obj.(*corev1.Service), false) },
		Deleted: func(obj runtime.Object) {
			s := obj.(*corev1.Service)
			a.hasMoved(s, true)
			if ip, ok := addressOf(s); ok {
				a.release(ip, ownerOf(s))
				a.settled(ip)
			}
		},
	})
}

func (a *Addresses) settled(ip netip.Addr) {
	if a.told.Settled != nil {
		a.told.Settled(ip)
	}
}

// addressOf is the address of a service; false if it has none.
func addressOf(s *corev1.Service) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(s.Spec.ClusterIP)
	return ip, err == nil
}

// move is an address that an update of a service gives it, or takes from it, once it is written.
type move struct {
	ip   netip.Addr
	from string // the version of the service that the update is of
}

// moves notes that an update gives a service an address, or takes the one that it has: when it is written, which it is
// not yet, hasMoved does the rest.
func (a *Addresses) moves(s, before *corev1.Service) {
	changes := s
	if HasAddress(before) {
		changes = before
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip, ok := addressOf(changes); ok {
		a.moved[before.UID] = append(a.moved[before.UID], move{ip, before.ResourceVersion})
	}
}

// hasMoved gives back what a service had before an update, or was to have by one that was not written because another
// one was first.
func (a *Addresses) hasMoved(s *corev1.Service, gone bool) {
	now, _ := addressOf(s)
	for _, ip := range a.forget(s, gone) {
		if ip != now {
			a.release(ip, ownerOf(s))
		}
		a.settled(ip)
	}
}

// forget takes out the moves from versions of a service older than s; those from s itself are still being written,
// unless it is gone.
func (a *Addresses) forget(s *corev1.Service, gone bool) (past []netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if gone && a.early != nil {
		a.early[s.UID] = true
	}
	var rest []move
	for _, m := range a.moved[s.UID] {
		order, err := resourceversion.CompareResourceVersion(m.from, s.ResourceVersion)
		if !gone && err == nil && order >= 0 {
			rest = append(rest, m)
		} else {
			past = append(past, m.ip)
		}
	}
	if a.moved[s.UID] = rest; len(rest) == 0 {
		delete(a.moved, s.UID)
	}
	return past
}

// assign sets the service's address fields. The returned function, if any, gives the address back when the write did
// not happen.
func (a *Addresses) assign(s *corev1.Service, dry bool) (onwrite.Finish, error) {
	if !HasAddress(s) {
		return nil, nil
	}
	if s.Spec.ClusterIP == "" && len(s.Spec.ClusterIPs) > 0 {
		s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	}
	if all := fillFamilies(&s.Spec, familyOf(a.own.Addr())); len(all) > 0 {
		return nil, invalid(s, all)
	}
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		s.Spec.ClusterIPs = []string{corev1.ClusterIPNone}
		return nil, nil
	}
	refuse := func(msg string) error {
		return invalid(s, field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIPs").Index(0), s.Spec.ClusterIP,
			msg)})
	}
	var wanted netip.Addr
	if s.Spec.ClusterIP != "" {
		ip, err := netip.ParseAddr(s.Spec.ClusterIP)
		if err != nil {
			return nil, refuse("must be a valid IP address, 'None', or empty")
		}
		wanted = ip
	}
	ip, err := a.take(wanted, ownerOf(s))
	if err != nil {
		return nil, refuse("failed to allocate IP: " + err.Error())
	}
	s.Spec.ClusterIP, s.Spec.ClusterIPs = ip.String(), []string{ip.String()}
	return func(ok bool) {
		if !ok || dry {
			a.release(ip, ownerOf(s))
		}
	}, nil
}

// changes refuses families that a service is given and cannot have. What an older version has let in stays as it is.
func (a *Addresses) changes(s, before *corev1.Service) error {
	if !HasAddress(s) || !HasAddress(before) || ptr.Equal(s.Spec.IPFamilyPolicy, before.Spec.IPFamilyPolicy) &&
		slices.Equal(s.Spec.IPFamilies, before.Spec.IPFamilies) &&
		slices.Equal(s.Spec.ClusterIPs, before.Spec.ClusterIPs) {
		return nil
	}
	if all := fillFamilies(&s.Spec, familyOf(a.own.Addr())); len(all) > 0 {
		return invalid(s, all)
	}
	return nil
}

func invalid(s *corev1.Service, all field.ErrorList) error {
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), s.Name, all)
}

// HasAddress reports whether a service is of a type that lives behind an address of the service range.
func HasAddress(s *corev1.Service) bool { return s.Spec.Type != corev1.ServiceTypeExternalName }
