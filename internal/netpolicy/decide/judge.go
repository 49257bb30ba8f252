// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Connection is one that is asked about.
type Connection struct {
	From, To netip.Addr
	Proto    Proto
	Port     uint16
}

// Verdict says whether a connection passes, and why.
type Verdict struct {
	Allowed bool `json:"allowed"`
	// Out and In are what the policies of the sender and those of the receiver say. One that is not there is none of
	// the pods here, or on the machine's network, and no policy is asked.
	Out *Opinion `json:"egress,omitempty"`
	In  *Opinion `json:"ingress,omitempty"`
	// Reason is why no policy was asked.
	Reason string `json:"reason,omitempty"`
}

// Opinion is what the policies of one pod say in one direction.
type Opinion struct {
	Pod string `json:"pod"` // as namespace/name
	// Policies isolate the pod in this direction; none: everything passes.
	Policies []string `json:"policies"`
	Allowed  bool     `json:"allowed"`
	By       []string `json:"by,omitempty"` // rules that let it pass, as policy spec.ingress[0]
}

// end is one of a connection, as rules see it.
type end struct {
	addr      netip.Addr
	pod       bool
	namespace string
	labels    labels.Set
}

// owner is the pod that has an address; nil if it is none's.
func (w *World) owner(a netip.Addr) *pod {
	if o := w.owners[a]; len(o) > 0 {
		return o[0]
	}
	return nil
}

func (w *World) end(a netip.Addr) end {
	if w.names != nil && (a == w.names.Asked.Addr()) {
		return w.names.end()
	}
	p := w.owner(a)
	if p == nil {
		return end{addr: a}
	}
	return end{addr: a, pod: true, namespace: p.namespace, labels: p.labels}
}

// Judge says whether a connection from one address to another passes. The addresses are those that packets have: a
// service's is another question, but for the name server's.
func (w *World) Judge(c Connection) Verdict {
	from, to := w.owner(c.From), w.owner(c.To)
	if from != nil && from == to {
		return Verdict{Allowed: true, Reason: "a pod always reaches itself"}
	}
	v := Verdict{Allowed: true}
	if from != nil && !from.elsewhere {
		v.Out = w.opinion(Out, from, w.end(c.To), c)
		v.Allowed = v.Out.Allowed
	}
	if to != nil && !to.elsewhere {
		v.In = w.opinion(In, to, w.end(c.From), c)
		v.Allowed = v.Allowed && v.In.Allowed
	}
	return v
}

func (w *World) opinion(d Direction, of *pod, other end, c Connection) *Opinion {
	o := &Opinion{Pod: of.namespace + "/" + of.name, Policies: []string{}, Allowed: true}
	isolating := w.isolating(of.namespace, of.labels, d)
	if len(isolating) == 0 {
		return o
	}
	for _, p := range isolating {
		o.Policies = append(o.Policies, p.name)
		for _, r := range p.side(d).rules {
			if r.passes(w, other, c.Proto, c.Port, w.portNames(c)...) {
				o.By = append(o.By, p.name+" "+r.field)
			}
		}
	}
	o.Allowed = len(o.By) > 0
	return o
}

// portNames are the names that a connection's port has at the pod that it is to.
func (w *World) portNames(c Connection) (out []string) {
	if w.names != nil && c.To == w.names.Asked.Addr() {
		if c.Port == w.names.Asked.Port() {
			return []string{w.names.portName(c.Proto)}
		}
		return nil
	}
	p := w.owner(c.To)
	if p == nil {
		return nil
	}
	for _, named := range p.ports {
		if named.proto == c.Proto && named.number == c.Port {
			out = append(out, named.name)
		}
	}
	return out
}

// passes reports whether a rule lets the other end and the port pass. The port has these names where the packet goes.
func (r rule) passes(w *World, other end, proto Proto, number uint16, names ...string) bool {
	who := len(r.peers) == 0 || slices.ContainsFunc(r.peers, func(p peer) bool {
		if p.pods == nil {
			return p.block.Has(other.addr)
		}
		return other.pod && p.pods.has(w, other.namespace, other.labels)
	})
	return who && (len(r.ports) == 0 || slices.ContainsFunc(r.ports, func(p port) bool {
		if p.proto != proto {
			return false
		}
		if p.name != "" {
			return slices.Contains(names, p.name)
		}
		return p.low == 0 || p.low <= number && number <= p.high
	}))
}
