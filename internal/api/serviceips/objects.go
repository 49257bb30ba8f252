// SPDX-License-Identifier: Apache-2.0

package serviceips

import (
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/apis/networking"

	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/serviceips/ranges"
)

// AttachRanges has each ServiceCIDR be created with the finalizer that keeps it while its addresses are in use, and its
// end be noted. What else is written of one comes by PutRange: hooks are not called for all of it.
func (a *Addresses) AttachRanges(cidrs *onwrite.Hooks) {
	cidrs.Add(onwrite.Calls{
		Creating: func(obj runtime.Object, _ bool) (onwrite.Finish, error) {
			keepRange(obj.(*networking.ServiceCIDR))
			return nil, nil
		},
		Created: func(obj runtime.Object) {
			if a.told.Made != nil {
				a.told.Made(obj.(*networking.ServiceCIDR).Name)
			}
		},
		Updating: func(obj, old runtime.Object, _ bool) (onwrite.Finish, error) {
			if old.(*networking.ServiceCIDR).DeletionTimestamp == nil { // a PUT of a manifest leaves it out
				keepRange(obj.(*networking.ServiceCIDR))
			}
			return nil, nil
		},
		Deleted: func(obj runtime.Object) {
			o := obj.(*networking.ServiceCIDR)
			a.mu.Lock()
			a.ranges.End(o.Name, o.UID)
			a.renew()
			a.mu.Unlock()
			a.tellRange(o.Name)
		},
	})
}

func keepRange(o *networking.ServiceCIDR) {
	if !slices.Contains(o.Finalizers, ranges.Finalizer) {
		o.Finalizers = append(slices.Clip(o.Finalizers), ranges.Finalizer)
	}
}

// PutRange takes in a version of a ServiceCIDR that was stored. It does not block.
func (a *Addresses) PutRange(r ranges.Range) {
	a.mu.Lock()
	news := a.ranges.Put(r)
	if news {
		a.renew()
	}
	a.mu.Unlock()
	if news {
		a.tellRange(r.Name)
	}
}

func (a *Addresses) tellRange(name string) {
	if a.told.Range != nil {
		a.told.Range(name)
	}
}

// renew is called with mu held.
func (a *Addresses) renew() {
	a.open = a.ranges.Open()
	known := a.ranges.Known()
	if slices.Equal(known, a.known) {
		return
	}
	a.known = known
	close(a.changed)
	a.changed = make(chan struct{})
}

// Leaving are the names of the ranges whose deletion was asked for.
func (a *Addresses) Leaving() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ranges.Leaving()
}

// ReleaseRange decides whether a range that is leaving may go. If it may not, needs is an address that would be in no
// range any more. A range that is leaving gives no addresses, so what holds once holds on.
func (a *Addresses) ReleaseRange(name string) (needs netip.Addr, may bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ranges.Release(name, func(yield func(netip.Addr) bool) {
		for ip := range a.used {
			if !yield(ip) {
				return
			}
		}
	})
}

// AttachObjects has IPAddress objects of others take addresses, and refuses those of addresses that services have.
func (a *Addresses) AttachObjects(objects *onwrite.Hooks) {
	objects.Add(onwrite.Calls{
		Creating: func(obj runtime.Object, dry bool) (onwrite.Finish, error) {
			return a.hold(obj.(*networking.IPAddress), dry)
		},
		Created: func(obj runtime.Object) { a.written(obj.(*networking.IPAddress)) },
		Updated: func(obj runtime.Object) { a.written(obj.(*networking.IPAddress)) },
		Deleted: func(obj runtime.Object) {
			o := obj.(*networking.IPAddress)
			if ip, err := netip.ParseAddr(o.Name); err == nil {
				a.letGo(ip, o.UID)
				a.astray(ip, nil)
			}
		},
	})
}

func (a *Addresses) hold(o *networking.IPAddress, dry bool) (onwrite.Finish, error) {
	ip, err := netip.ParseAddr(o.Name)
	if err != nil {
		return nil, nil // validation refuses it
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if owner, taken := a.used[ip]; taken {
		if ranges.IsOf(o, owner) {
			return nil, nil
		}
		return nil, apierrors.NewAlreadyExists(networking.Resource("ipaddresses"), o.Name)
	}
	a.held[ip] = append(a.held[ip], o.UID)
	return func(ok bool) {
		if !ok || dry {
			a.letGo(ip, o.UID)
		}
	}, nil
}

func (a *Addresses) letGo(ip netip.Addr, uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rest := slices.DeleteFunc(a.held[ip], func(u types.UID) bool { return u == uid })
	if a.held[ip] = rest; len(rest) == 0 {
		delete(a.held, ip)
	}
}

// written has an object looked at that is not as that of its address should be.
func (a *Addresses) written(o *networking.IPAddress) {
	if ip, err := netip.ParseAddr(o.Name); err == nil {
		a.astray(ip, o)
	}
}

func (a *Addresses) astray(ip netip.Addr, have *networking.IPAddress) {
	if a.told.Astray != nil && ranges.Next(a.Owner(ip), have) != ranges.Nothing {
		a.told.Astray(ip)
	}
}

// LoadObjects takes in the IPAddress objects in the store, after Load, and returns the addresses whose objects are not
// as they should be: of a server that was killed, or of a version that made none.
func (a *Addresses) LoadObjects(objects []networking.IPAddress) (astray []netip.Addr) {
	used := a.InUse()
	seen := map[netip.Addr]bool{}
	for i := range objects {
		ip, err := netip.ParseAddr(objects[i].Name)
		if err != nil {
			continue
		}
		seen[ip] = true
		owner, taken := used[ip]
		switch {
		case ranges.Next(owner, &objects[i]) != ranges.Nothing:
			astray = append(astray, ip)
		case !taken:
			a.mu.Lock()
			a.held[ip] = append(a.held[ip], objects[i].UID)
			a.mu.Unlock()
		}
	}
	for ip := range used {
		if !seen[ip] {
			astray = append(astray, ip)
		}
	}
	slices.SortFunc(astray, netip.Addr.Compare)
	return astray
}
