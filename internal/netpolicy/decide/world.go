// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// World is what there is, and what follows from it. It belongs to one goroutine.
type World struct {
	node     string // whose kernel this is for; empty: no node's
	networks []netip.Prefix

	policies   map[string]map[string]*policy // by namespace and name
	pods       map[string]map[string]*pod    // by namespace and name
	namespaces map[string]labels.Set
	owners     map[netip.Addr][]*pod // the newest first: the address is its
	names      *Names

	groups   map[string]*counted[*group] // by set
	ports    map[string]*counted[bool]   // sets of named ports
	profiles map[string]*counted[bool]   // chains

	want    Tables
	touched Touched
}

type counted[T any] struct {
	what T
	uses int
}

// New is a world without anything in it.
func New() *World {
	w := &World{policies: map[string]map[string]*policy{}, pods: map[string]map[string]*pod{},
		namespaces: map[string]labels.Set{}, owners: map[netip.Addr][]*pod{}, groups: map[string]*counted[*group]{},
		ports: map[string]*counted[bool]{}, profiles: map[string]*counted[bool]{},
		want:    Tables{Chains: map[string]Chain{}, Sets: map[string]Set{}},
		touched: Touched{Chains: map[string]bool{}, Sets: map[string]bool{}}}
	for _, name := range Fixed() {
		w.want.Sets[name] = Set{}
	}
	return w
}

// NewOn is one as a node has to enforce it whose pods have addresses of these networks. Other nodes may give theirs the
// same ones, which are not reached by those here: pods of other nodes do not count under such addresses.
func NewOn(node string, networks []netip.Prefix) *World {
	w := New()
	w.node, w.networks = node, networks
	return w
}

// Tables are what the kernel should have; they are empty without policies. They are the world's own, to be read before
// its next change.
func (w *World) Tables() Tables {
	if len(w.policies) == 0 {
		return Tables{}
	}
	return w.want
}

// Touched names what may have changed since it was asked for last.
func (w *World) Touched() *Touched {
	t := w.touched
	w.touched = Touched{Chains: map[string]bool{}, Sets: map[string]bool{}}
	return &t
}

// SetPod takes in a pod. One that has ended, has no address yet, or is on the machine's network counts as none: no
// policy is for those.
func (w *World) SetPod(p *corev1.Pod) {
	var now *pod
	if ends := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed; !ends &&
		!p.Spec.HostNetwork && len(p.Status.PodIPs) > 0 {
		now = w.readPod(p)
	}
	w.setPod(p.Namespace, p.Name, now)
}

// DropPod takes away a pod.
func (w *World) DropPod(namespace, name string) { w.setPod(namespace, name, nil) }

func (w *World) setPod(namespace, name string, now *pod) {
	was := w.pods[namespace][name]
	if was == nil && now == nil || was != nil && now != nil && was.same(now) {
		return
	}
	// Those that have an address with it: whose it is may change.
	others := map[*pod]bool{}
	for _, p := range []*pod{was, now} {
		if p == nil {
			continue
		}
		for _, a := range p.addrs {
			for _, o := range w.owners[a] {
				others[o] = true
			}
		}
	}
	for o := range others {
		w.withdraw(o)
	}
	if was != nil {
		delete(others, was)
		w.withdraw(was)
		for _, a := range was.addrs {
			w.owners[a] = slices.DeleteFunc(w.owners[a], func(o *pod) bool { return o == was })
			if len(w.owners[a]) == 0 {
				delete(w.owners, a)
			}
		}
		drop(w.pods, namespace, name)
	}
	if now != nil {
		put(w.pods, namespace, name, now)
		for _, a := range now.addrs {
			w.owners[a] = append(w.owners[a], now)
			slices.SortFunc(w.owners[a], newest)
		}
		others[now] = true
	}
	for o := range others {
		w.place(o)
	}
}

// isolating are the policies that isolate pods with these labels, in order of their names.
func (w *World) isolating(namespace string, of labels.Set, d Direction) (out []*policy) {
	for _, p := range w.policies[namespace] {
		if p.side(d) != nil && p.selects.Matches(of) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *policy) int { return cmp.Compare(a.name, b.name) })
	return out
}

// SetNamespace takes in a namespace's labels.
func (w *World) SetNamespace(name string, of map[string]string) {
	if was, there := w.namespaces[name]; there && maps.Equal(was, of) {
		return
	}
	w.namespaces[name] = maps.Clone(of)
	w.again(name)
}

// DropNamespace forgets a namespace.
func (w *World) DropNamespace(name string) {
	delete(w.namespaces, name)
	w.again(name)
}

// again decides anew about all pods of a namespace.
func (w *World) again(namespace string) {
	for _, p := range w.pods[namespace] {
		w.withdraw(p)
		w.place(p)
	}
	if namespace == NamesNamespace {
		w.namesAgain()
	}
}

// SetNames says where the name server is; nil: there is none of ours.
func (w *World) SetNames(n *Names) {
	if n == w.names || n != nil && w.names != nil && *n == *w.names {
		return
	}
	w.names = n
	w.want.Sets[SetNames] = Set{}
	w.touched.Sets[SetNames] = true
	if n != nil {
		for _, proto := range []Proto{TCP, UDP} {
			w.set(nil, SetNames, Elem{Addr: n.Listen.Addr(), Proto: proto, Port: n.Listen.Port()}, "")
		}
	}
	w.namesAgain()
}

func (w *World) namesAgain() {
	for _, all := range w.policies {
		for _, p := range all {
			w.setChains(p, Out)
		}
	}
}

// SetPolicy takes in a policy. An error says what of it is not understood, and lets nothing pass.
func (w *World) SetPolicy(p *networkingv1.NetworkPolicy) error {
	now, err := understand(p)
	w.setPolicy(p.Namespace, p.Name, now)
	if err != nil {
		return fmt.Errorf("NetworkPolicy %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// DropPolicy takes away a policy.
func (w *World) DropPolicy(namespace, name string) { w.setPolicy(namespace, name, nil) }

func (w *World) setPolicy(namespace, name string, now *policy) {
	was := w.policies[namespace][name]
	if was == nil && now == nil {
		return
	}
	affected := func(p *pod) bool {
		return was != nil && was.selects.Matches(p.labels) || now != nil && now.selects.Matches(p.labels)
	}
	for _, p := range w.pods[namespace] {
		if affected(p) {
			w.withdraw(p)
		}
	}
	drop(w.policies, namespace, name)
	if now != nil {
		put(w.policies, namespace, name, now)
		w.use(now)
	}
	for _, p := range w.pods[namespace] {
		if affected(p) {
			w.place(p)
		}
	}
	for _, d := range []Direction{In, Out} {
		if was != nil {
			for chain := range w.chains(was, d) {
				w.dropChain(chain)
			}
		}
		if now != nil {
			w.setChains(now, d)
		}
	}
	if was != nil {
		w.disuse(was)
	}
}

func (w *World) setChains(p *policy, d Direction) {
	for name, c := range w.chains(p, d) {
		w.setChain(name, c)
	}
}

// use makes the sets that a policy speaks of.
func (w *World) use(p *policy) {
	all := func(do func(*pod, []netip.Addr)) {
		for _, pods := range w.pods {
			for _, o := range pods {
				if o.stands { // others are placed soon, or have no address
					do(o, slices.DeleteFunc(slices.Clone(o.addrs),
						func(a netip.Addr) bool { return w.owners[a][0] != o }))
				}
			}
		}
	}
	for _, g := range p.groups() {
		if acquire(w.groups, g.set(), g) {
			w.makeSet(g.set())
			all(func(o *pod, addrs []netip.Addr) { w.join(o, addrs, g.set(), g) })
		}
	}
	for _, set := range p.namedPorts() {
		if acquire(w.ports, set, true) {
			w.makeSet(set)
			all(func(o *pod, addrs []netip.Addr) { w.offer(o, addrs, set) })
		}
	}
}

func (w *World) disuse(p *policy) {
	gone := map[string]bool{}
	for _, g := range p.groups() {
		gone[g.set()] = release(w.groups, g.set())
	}
	for _, set := range p.namedPorts() {
		gone[set] = release(w.ports, set)
	}
	maps.DeleteFunc(gone, func(_ string, last bool) bool { return !last })
	if len(gone) == 0 {
		return
	}
	for set := range gone {
		w.dropSet(set)
	}
	for _, pods := range w.pods {
		for _, o := range pods {
			o.put = slices.DeleteFunc(o.put, func(e placed) bool { return gone[e.set] })
		}
	}
}

// acquire counts a use and reports whether it is the first.
func acquire[T any](all map[string]*counted[T], name string, what T) bool {
	c := all[name]
	if c == nil {
		c = &counted[T]{what: what}
		all[name] = c
	}
	c.uses++
	return c.uses == 1
}

// release counts down and reports whether it was the last use.
func release[T any](all map[string]*counted[T], name string) bool {
	c := all[name]
	c.uses--
	if c.uses > 0 {
		return false
	}
	delete(all, name)
	return true
}

func put[T any](all map[string]map[string]T, namespace, name string, what T) {
	if all[namespace] == nil {
		all[namespace] = map[string]T{}
	}
	all[namespace][name] = what
}

func drop[T any](all map[string]map[string]T, namespace, name string) {
	delete(all[namespace], name)
	if len(all[namespace]) == 0 {
		delete(all, namespace)
	}
}
