// SPDX-License-Identifier: Apache-2.0

package names

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// Service is what names need of one.
type Service struct {
	Namespace    string       `json:"namespace"`
	Name         string       `json:"name"`
	IPs          []netip.Addr `json:"ips,omitempty"` // its cluster IPs; none: it is headless
	ExternalName string       `json:"externalName,omitempty"`
	Ports        []Port       `json:"ports,omitempty"`
}

// Port is one of a service or of endpoints.
type Port struct {
	Name     string `json:"name,omitempty"`
	Protocol string `json:"protocol"` // tcp, udp or sctp
	Number   uint16 `json:"number"`
}

// Slice is an endpoint slice, of which only the endpoints count that are ready.
type Slice struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Service   string     `json:"service"`
	Ports     []Port     `json:"ports,omitempty"`
	Endpoints []Endpoint `json:"endpoints,omitempty"`
}

// Endpoint is one that is ready.
type Endpoint struct {
	Hostname  string       `json:"hostname,omitempty"`
	Addresses []netip.Addr `json:"addresses"`
}

// Pod is one that asks: it is known by its addresses, which are its own.
type Pod struct {
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	UID       string       `json:"uid"`
	IPs       []netip.Addr `json:"ips"`
}

// Node is one whose pods ask: by their addresses, or, those on its own network, by its.
type Node struct {
	Name      string         `json:"name"`
	Networks  []netip.Prefix `json:"networks,omitempty"` // of its pods
	Addresses []netip.Addr   `json:"addresses,omitempty"`
}

// Change is one object that came, changed or went: exactly one of the four is set. Of one that went the names are
// enough.
type Change struct {
	Gone    bool     `json:"gone,omitempty"`
	Service *Service `json:"service,omitempty"`
	Slice   *Slice   `json:"slice,omitempty"`
	Pod     *Pod     `json:"pod,omitempty"`
	Node    *Node    `json:"node,omitempty"`
}

// Key reports whether two changes are about the same object.
func (c Change) Key() string {
	switch {
	case c.Service != nil:
		return "service/" + c.Service.Namespace + "/" + c.Service.Name
	case c.Slice != nil:
		return "slice/" + c.Slice.Namespace + "/" + c.Slice.Name
	case c.Pod != nil:
		return "pod/" + c.Pod.Namespace + "/" + c.Pod.Name
	case c.Node != nil:
		return "node/" + c.Node.Name
	}
	return ""
}

// name is a namespaced name.
type name struct{ namespace, name string }

// World is all that is known.
type World struct {
	nodes      map[name]*Node // without a namespace
	zone       Zone
	services   map[name]*Service
	slices     map[name]*Slice
	pods       map[name]*Pod
	sliced     map[name]map[name]*Slice // by service
	clusterIPs map[netip.Addr]name
	endpoints  map[netip.Addr]map[name]bool // the slices that an address is in
	addresses  map[netip.Addr]name          // of pods
	namespaces map[string]int               // those that something is known in
}

// Zone is the part of the world's names that is the cluster's.
type Zone struct {
	Domain   string         `json:"domain"`             // cluster.local
	Networks []netip.Prefix `json:"networks,omitempty"` // of services and pods: who has no name here has none elsewhere
}

// New makes an empty one.
func New(zone Zone) *World {
	return &World{zone: zone, nodes: map[name]*Node{}, services: map[name]*Service{}, slices: map[name]*Slice{},
		pods: map[name]*Pod{}, sliced: map[name]map[name]*Slice{}, clusterIPs: map[netip.Addr]name{},
		endpoints: map[netip.Addr]map[name]bool{}, addresses: map[netip.Addr]name{}, namespaces: map[string]int{}}
}

// Apply takes a change in. One that says nothing is ignored.
func (w *World) Apply(c Change) {
	switch {
	case c.Service != nil:
		w.applyService(c.Service, c.Gone)
	case c.Slice != nil:
		w.applySlice(c.Slice, c.Gone)
	case c.Pod != nil:
		w.applyPod(c.Pod, c.Gone)
	case c.Node != nil && c.Gone:
		delete(w.nodes, name{"", c.Node.Name})
	case c.Node != nil:
		w.nodes[name{"", c.Node.Name}] = c.Node
	}
}

// Inside reports whether an address is a service's, a pod's or a node's.
func (w *World) Inside(ip netip.Addr) bool {
	for _, n := range w.nodes {
		if slices.Contains(n.Addresses, ip) {
			return true
		}
	}
	return w.ofNetworks(ip)
}

// ofNetworks reports whether an address is in the networks of services and pods.
func (w *World) ofNetworks(ip netip.Addr) bool {
	has := func(p netip.Prefix) bool { return p.Contains(ip) }
	for _, n := range w.nodes {
		if slices.ContainsFunc(n.Networks, has) {
			return true
		}
	}
	return slices.ContainsFunc(w.zone.Networks, has)
}

func (w *World) count(namespace string, by int) {
	if w.namespaces[namespace] += by; w.namespaces[namespace] <= 0 {
		delete(w.namespaces, namespace)
	}
}

func (w *World) applyService(s *Service, gone bool) {
	key := name{s.Namespace, s.Name}
	if old := w.services[key]; old != nil {
		for _, ip := range old.IPs {
			if w.clusterIPs[ip] == key { // it may be another's already
				delete(w.clusterIPs, ip)
			}
		}
		delete(w.services, key)
		w.count(key.namespace, -1)
	}
	if gone {
		return
	}
	w.services[key] = s
	w.count(key.namespace, 1)
	for _, ip := range s.IPs {
		w.clusterIPs[ip] = key
	}
}

func (w *World) applySlice(s *Slice, gone bool) {
	key := name{s.Namespace, s.Name}
	if old := w.slices[key]; old != nil {
		of := name{old.Namespace, old.Service}
		delete(w.sliced[of], key)
		if len(w.sliced[of]) == 0 {
			delete(w.sliced, of)
		}
		for _, e := range old.Endpoints {
			for _, ip := range e.Addresses {
				delete(w.endpoints[ip], key)
				if len(w.endpoints[ip]) == 0 {
					delete(w.endpoints, ip)
				}
			}
		}
		delete(w.slices, key)
	}
	if gone || s.Service == "" {
		return
	}
	w.slices[key] = s
	of := name{s.Namespace, s.Service}
	if w.sliced[of] == nil {
		w.sliced[of] = map[name]*Slice{}
	}
	w.sliced[of][key] = s
	for _, e := range s.Endpoints {
		for _, ip := range e.Addresses {
			if w.endpoints[ip] == nil {
				w.endpoints[ip] = map[name]bool{}
			}
			w.endpoints[ip][key] = true
		}
	}
}

func (w *World) applyPod(p *Pod, gone bool) {
	key := name{p.Namespace, p.Name}
	if old := w.pods[key]; old != nil {
		for _, ip := range old.IPs {
			if w.addresses[ip] == key {
				delete(w.addresses, ip)
			}
		}
		delete(w.pods, key)
		w.count(key.namespace, -1)
	}
	if gone {
		return
	}
	w.pods[key] = p
	w.count(key.namespace, 1)
	for _, ip := range p.IPs {
		w.addresses[ip] = key
	}
}

// PodAt is the pod that has an address; nil if none is known to.
func (w *World) PodAt(ip netip.Addr) *Pod { return w.pods[w.addresses[ip.Unmap()]] }

// All is the world in changes that make the same one of an empty one, in a fixed order.
func (w *World) All() (all []Change) {
	for _, k := range sorted(w.services) {
		all = append(all, Change{Service: w.services[k]})
	}
	for _, k := range sorted(w.slices) {
		all = append(all, Change{Slice: w.slices[k]})
	}
	for _, k := range sorted(w.pods) {
		all = append(all, Change{Pod: w.pods[k]})
	}
	for _, k := range sorted(w.nodes) {
		all = append(all, Change{Node: w.nodes[k]})
	}
	return all
}

func sorted[V any](m map[name]V) []name {
	return slices.SortedFunc(maps.Keys(m), func(a, b name) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}
