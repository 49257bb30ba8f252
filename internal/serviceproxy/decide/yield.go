// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"net/netip"
	"slices"
)

// Refusal is an entry that a service is not given, and why.
type Refusal struct {
	Key     Key
	Service string // namespace/name
	Why     string
}

// Yield takes entries out of the tables that are not a service's to have (RS-10), and names them, sorted:
//
//   - addresses of others in the networks of pods and services. Whoever may write services could take the connections
//     to any pod and service, and to the cluster's names, by them.
//   - ports of the machine on which a program listens already: the API server itself, sshd. busy says which, or nothing.
//     What the kernel has already, as carried shows, stays the service's: the program has come later.
func (t Tables) Yield(f Facts, parts []*Part, carried map[Key]string, busy func(Key) string) (out []Refusal) {
	owners := owners(parts)
	for key := range t.Keys {
		why := ""
		_, before := carried[key]
		switch {
		case key.Place == External && f.reserved(key.Addr):
			why = fmt.Sprintf("%s is an address in the networks of pods and services: choose one outside of them",
				key.Addr)
		case !before && (key.Place == NodePort || key.Place == External && slices.Contains(f.Machine, key.Addr)):
			if why = busy(key); why != "" {
				why += ": stop it, or choose another port"
			}
		}
		if why != "" {
			out = append(out, Refusal{Key: key, Service: owners[key], Why: why})
		}
	}
	for _, r := range out {
		delete(t.Keys, r.Key)
	}
	slices.SortFunc(out, func(a, b Refusal) int { return compareKeys(a.Key, b.Key) })
	return out
}

// reserved reports whether an address is in a network whose addresses are given by the cluster.
func (f Facts) reserved(a netip.Addr) bool {
	in := func(p netip.Prefix) bool { return p.Contains(a) }
	return slices.ContainsFunc(f.Pods, in) || slices.ContainsFunc(f.Reserved, in)
}

// owners are the services that [Merge] gives entries to.
func owners(parts []*Part) map[Key]string {
	out := map[Key]string{}
	for _, p := range byAge(parts) {
		for key := range p.Keys {
			if _, taken := out[key]; !taken {
				out[key] = p.Name
			}
		}
	}
	return out
}
