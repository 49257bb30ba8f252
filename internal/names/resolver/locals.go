// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// locals knows the machine's own addresses.
type locals struct {
	mu     sync.Mutex
	known  map[netip.Addr]bool
	looked time.Time
}

// has reports whether an address is the machine's. They are read again for one that is not, though not at each.
func (l *locals) has(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[a] {
		return true
	}
	if now := time.Now(); now.Sub(l.looked) >= time.Second || now.Before(l.looked) {
		l.looked, l.known = now, map[netip.Addr]bool{}
		list, err := net.InterfaceAddrs()
		if err != nil {
			return false
		}
		for _, each := range list {
			if p, err := netip.ParsePrefix(each.String()); err == nil {
				l.known[p.Addr().Unmap()] = true
			}
		}
	}
	return l.known[a]
}
