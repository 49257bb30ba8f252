// SPDX-License-Identifier: Apache-2.0

package serviceips

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/onwrite"
)

// Addresses hands out the cluster IPs of services. What is taken is rebuilt from the stored services at start; the
// server is the only writer of its store.
type Addresses struct {
	cidr netip.Prefix
	size uint64 // usable addresses, the first one being cidr+1

	mu   sync.Mutex
	used map[netip.Addr]bool
}

// New hands out those of a network, which must have room for two.
func New(cidr netip.Prefix) (*Addresses, error) {
	cidr = cidr.Masked()
	bits := cidr.Addr().BitLen() - cidr.Bits()
	if bits < 2 {
		return nil, fmt.Errorf("service range %s: too small, use at least a /30 (IPv4) or /126 (IPv6)", cidr)
	}
	size := uint64(1)<<min(bits, 20) - 2 // without network and broadcast; a million services are enough
	return &Addresses{cidr: cidr, size: size, used: map[netip.Addr]bool{}}, nil
}

// Range is the network that they are of.
func (a *Addresses) Range() netip.Prefix { return a.cidr }

// First is the address of the API server's own service.
func (a *Addresses) First() netip.Addr { return a.nth(0) }

func (a *Addresses) nth(n uint64) netip.Addr {
	if a.cidr.Addr().Is4() {
		b := a.cidr.Addr().As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n)+1)
		return netip.AddrFrom4(b)
	}
	b := a.cidr.Addr().As16()
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+n+1)
	return netip.AddrFrom16(b)
}

// take reserves the wanted address, or any free one when wanted is the zero Addr.
func (a *Addresses) take(wanted netip.Addr) (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if wanted.IsValid() {
		switch {
		case !a.cidr.Contains(wanted):
			return wanted, fmt.Errorf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s",
				wanted, a.cidr)
		case a.used[wanted]:
			return wanted, fmt.Errorf("provided IP is already allocated")
		}
		a.used[wanted] = true
		return wanted, nil
	}
	// The first address is the API server's own; start anywhere so that an address is not reused at once.
	start := rand.Uint64N(a.size)
	for i := range a.size {
		if n := (start + i) % a.size; n != 0 {
			if ip := a.nth(n); !a.used[ip] {
				a.used[ip] = true
				return ip, nil
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("range %s is full", a.cidr)
}

func (a *Addresses) release(ip netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.used, ip)
}

// Load takes the addresses of the services in the store.
func (a *Addresses) Load(services []corev1.Service) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range services {
		if ip, err := netip.ParseAddr(services[i].Spec.ClusterIP); err == nil {
			a.used[ip] = true
		}
	}
}

// Attach makes a service store allocate and free addresses.
func (a *Addresses) Attach(services *onwrite.Hooks) {
	services.Add(onwrite.Calls{
		Creating: func(obj runtime.Object, dry bool) (onwrite.Finish, error) {
			return a.assign(obj.(*corev1.Service), dry)
		},
		Updating: func(obj, old runtime.Object, dry bool) (onwrite.Finish, error) {
			s, before := obj.(*corev1.Service), old.(*corev1.Service)
			if !HasAddress(before) && HasAddress(s) {
				return a.assign(s, dry)
			}
			if err := a.changed(s, before); err != nil {
				return nil, err
			}
			return func(ok bool) {
				if ok && !dry && HasAddress(before) && !HasAddress(s) {
					a.free(before)
				}
			}, nil
		},
		Deleted: func(obj runtime.Object) { a.free(obj.(*corev1.Service)) },
	})
}

func (a *Addresses) free(s *corev1.Service) {
	if ip, err := netip.ParseAddr(s.Spec.ClusterIP); err == nil {
		a.release(ip)
	}
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
	if all := fillFamilies(&s.Spec, familyOf(a.cidr.Addr())); len(all) > 0 {
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
	ip, err := a.take(wanted)
	if err != nil {
		return nil, refuse("failed to allocate IP: " + err.Error())
	}
	s.Spec.ClusterIP, s.Spec.ClusterIPs = ip.String(), []string{ip.String()}
	return func(ok bool) {
		if !ok || dry {
			a.release(ip)
		}
	}, nil
}

// changed refuses families that a service is given and cannot have. What an older version has let in stays as it is.
func (a *Addresses) changed(s, before *corev1.Service) error {
	if !HasAddress(s) || !HasAddress(before) || ptr.Equal(s.Spec.IPFamilyPolicy, before.Spec.IPFamilyPolicy) &&
		slices.Equal(s.Spec.IPFamilies, before.Spec.IPFamilies) &&
		slices.Equal(s.Spec.ClusterIPs, before.Spec.ClusterIPs) {
		return nil
	}
	if all := fillFamilies(&s.Spec, familyOf(a.cidr.Addr())); len(all) > 0 {
		return invalid(s, all)
	}
	return nil
}

func invalid(s *corev1.Service, all field.ErrorList) error {
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), s.Name, all)
}

// HasAddress reports whether a service is of a type that lives behind an address of the service range.
func HasAddress(s *corev1.Service) bool { return s.Spec.Type != corev1.ServiceTypeExternalName }
