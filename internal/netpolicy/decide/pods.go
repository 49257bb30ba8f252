// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wherryproject/wherry/internal/podspec"
)

// pod is one with a network of its own.
type pod struct {
	namespace, name string
	created         time.Time
	uid             string
	labels          labels.Set
	addrs           []netip.Addr
	ports           []namedPort
	elsewhere       bool // on another node: a peer of those here, whose own policies are not for this kernel

	stands   bool     // its elements are in the sets
	put      []placed // those
	profiles []string // that it uses
}

type namedPort struct {
	name   string
	proto  Proto
	number uint16
}

type placed struct {
	set  string
	elem Elem
}

func (w *World) readPod(p *corev1.Pod) *pod {
	out := &pod{namespace: p.Namespace, name: p.Name, created: p.CreationTimestamp.Time, uid: string(p.UID),
		labels: labels.Set(p.Labels), elsewhere: w.node != "" && p.Spec.NodeName != w.node}
	for _, ip := range p.Status.PodIPs {
		a, err := netip.ParseAddr(ip.IP)
		if err != nil || out.elsewhere &&
			slices.ContainsFunc(w.networks, func(n netip.Prefix) bool { return n.Contains(a.Unmap()) }) {
			continue
		}
		out.addrs = append(out.addrs, a.Unmap())
	}
	for ref := range podspec.OwnContainers(&p.Spec) {
		if ref.Kind == podspec.Init {
			continue
		}
		for _, port := range ref.Container.Ports {
			if port.Name != "" {
				out.ports = append(out.ports, namedPort{port.Name, ProtoOf(port.Protocol), uint16(port.ContainerPort)})
			}
		}
	}
	return out
}

// same reports whether nothing that matters has changed.
func (p *pod) same(o *pod) bool {
	return p.uid == o.uid && p.elsewhere == o.elsewhere && p.created.Equal(o.created) &&
		maps.Equal(p.labels, o.labels) &&
		slices.Equal(p.addrs, o.addrs) && slices.Equal(p.ports, o.ports)
}

func newest(a, b *pod) int {
	return cmp.Or(b.created.Compare(a.created), cmp.Compare(a.uid, b.uid), cmp.Compare(a.namespace, b.namespace),
		cmp.Compare(a.name, b.name))
}

// withdraw takes a pod's elements away.
func (w *World) withdraw(p *pod) {
	for _, e := range p.put {
		w.unset(e.set, e.elem)
	}
	for _, name := range p.profiles {
		if release(w.profiles, name) {
			w.dropChain(name)
		}
	}
	p.put, p.profiles, p.stands = nil, nil, false
}

// place puts a pod's elements where they belong.
func (w *World) place(p *pod) {
	var addrs []netip.Addr
	for _, a := range p.addrs {
		if w.owners[a][0] == p {
			addrs = append(addrs, a)
		}
	}
	if len(addrs) == 0 {
		return
	}
	p.stands = true
	if !p.elsewhere {
		w.judged(p, addrs)
	}
	for set, g := range w.groups {
		w.join(p, addrs, set, g.what)
	}
	for set := range w.ports {
		w.offer(p, addrs, set)
	}
}

// judged puts a pod where its own policies judge what it sends and gets.
func (w *World) judged(p *pod, addrs []netip.Addr) {
	free := true
	for d, set := range map[Direction]string{In: SetIn, Out: SetOut} {
		to := Accept
		if isolating := w.isolating(p.namespace, p.labels, d); len(isolating) > 0 {
			free = false
			var chain Chain
			to, chain = w.profile(d, isolating)
			if acquire(w.profiles, to, true) {
				w.setChain(to, chain)
			}
			p.profiles = append(p.profiles, to)
		}
		for _, a := range addrs {
			w.set(p, set, Elem{Addr: a}, to)
		}
	}
	for _, a := range addrs {
		w.set(p, SetSelf, Elem{Addr: a, Other: a}, "")
		if !free {
			w.set(p, SetIsolated, Elem{Addr: a}, "")
		}
	}
}

// join puts a pod into a set of peers, if it belongs there.
func (w *World) join(p *pod, addrs []netip.Addr, set string, g *group) {
	if !g.has(w, p.namespace, p.labels) {
		return
	}
	for _, a := range addrs {
		w.set(p, set, Elem{Addr: a}, "")
	}
}

// offer puts a pod's ports into the set of those of a name.
func (w *World) offer(p *pod, addrs []netip.Addr, set string) {
	for _, named := range p.ports {
		if (port{proto: named.proto, name: named.name}).set() != set {
			continue
		}
		for _, a := range addrs {
			w.set(p, set, Elem{Addr: a, Proto: named.proto, Port: named.number}, "")
		}
	}
}
