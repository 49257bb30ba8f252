// SPDX-License-Identifier: Apache-2.0

package serviceproxy

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
)

// tellLost says once which services do not get an address and port because others have them.
func (p *Proxy) tellLost(parts []*decide.Part) {
	now := map[decide.Loss]bool{}
	for _, l := range decide.Lost(parts) {
		now[l] = true
		if !p.lost[l] {
			p.config.Log.Warn("two services want the same address and port: the older one has it", "what",
				l.Key.String(), "service", l.Loser, "older", l.Has)
		}
	}
	p.lost = now
}

// tellRefused says once, in the log and to those who look at the service, what a service does not get because it is not
// a service's to have.
func (p *Proxy) tellRefused(refused []decide.Refusal) {
	now := map[decide.Refusal]bool{}
	for _, r := range refused {
		if now[r] = true; p.refused[r] {
			continue
		}
		p.config.Log.Warn("a service does not get an address and port", "what", r.Key.String(), "service", r.Service,
			"why", r.Why)
		if s := p.service(r.Service); s != nil {
			p.events.Eventf(s, corev1.EventTypeWarning, "AddressNotCarried", "%s on node %s: %s", r.Key, p.config.Node,
				r.Why)
		}
	}
	p.refused = now
}

// at is the address of an entry, or what stands for all.
func at(k decide.Key) netip.Addr {
	switch {
	case k.Addr.IsValid():
		return k.Addr
	case k.Six:
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}
