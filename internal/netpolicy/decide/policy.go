// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// policy is a NetworkPolicy, understood. It is never changed.
type policy struct {
	namespace, name string
	selects         labels.Selector
	sides           [2]*side // nil: it does not isolate in this direction
}

// side is a policy's rules in one direction. None: nothing passes.
type side struct{ rules []rule }

// rule lets pass what matches one of its peers and one of its ports. No peers are all, and so are no ports.
type rule struct {
	field string // where it stands in the policy
	peers []peer
	ports []port
}

// peer is either pods or a network.
type peer struct {
	pods  *group
	block Block
}

// port is numbers of a protocol or a name. low is 0 for all.
type port struct {
	proto     Proto
	low, high uint16
	name      string
}

// group is the pods that a pair of selectors matches.
type group struct {
	namespace  string          // its name; empty: those that the selector matches
	namespaces labels.Selector // nil if there is a name
	pods       labels.Selector
}

// set is the name of the set of its members' addresses: the same for the same selectors.
func (g *group) set() string {
	of := g.namespace
	if g.namespaces != nil {
		of = " " + g.namespaces.String() // no namespace's name begins so
	}
	return prefixPeers + Print(of, g.pods.String())
}

// has reports whether a pod belongs to it. A namespace that is not known yet has no labels that anything could match,
// nor lacks any.
func (g *group) has(w *World, namespace string, of labels.Labels) bool {
	if g.namespaces == nil {
		return namespace == g.namespace && g.pods.Matches(of)
	}
	in, known := w.namespaces[namespace]
	return known && g.namespaces.Matches(in) && g.pods.Matches(of)
}

func (p port) set() string { return prefixPort + strings.ToLower(p.proto.String()) + "/" + p.name }

func dirIndex(d Direction) int {
	if d == Out {
		return 1
	}
	return 0
}

func (p *policy) side(d Direction) *side { return p.sides[dirIndex(d)] }

func (p *policy) key() string { return p.namespace + "/" + p.name }

// chain is the name of the policy's chain of a direction.
func (p *policy) chain(d Direction) string {
	const longest = 200 // the kernel takes 255; there may be a rule's number yet
	name := d.String() + "/" + p.key()
	if len(name) > longest {
		name = d.String() + "/" + p.namespace + "/" + Print(p.name)
	}
	return name
}

// understand reads a policy. The API has validated it: an error says that it is from another time. Rules that are not
// understood are left out, so that they let nothing pass. Of a policy whose selector is not understood all are, and it
// isolates each pod that it may be for: all of its namespace.
func understand(p *networkingv1.NetworkPolicy) (*policy, error) {
	out := &policy{namespace: p.Namespace, name: p.Name}
	var errs []error
	ingress, egress := p.Spec.Ingress, p.Spec.Egress
	var err error
	if out.selects, err = metav1.LabelSelectorAsSelector(&p.Spec.PodSelector); err != nil {
		errs = append(errs, fmt.Errorf("spec.podSelector: %w", err))
		out.selects, ingress, egress = labels.Everything(), nil, nil
	}
	types := p.Spec.PolicyTypes
	if len(types) == 0 {
		types = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(p.Spec.Egress) > 0 {
			types = append(types, networkingv1.PolicyTypeEgress)
		}
	}
	add := func(s *side, field, peersAt string, peers []networkingv1.NetworkPolicyPeer,
		ports []networkingv1.NetworkPolicyPort) {
		r, err := readRule(p.Namespace, peersAt, peers, ports)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s.%w", field, err))
			return
		}
		r.field = field
		s.rules = append(s.rules, r)
	}
	if slices.Contains(types, networkingv1.PolicyTypeIngress) {
		s := &side{}
		for i, r := range ingress {
			add(s, fmt.Sprintf("spec.ingress[%d]", i), "from", r.From, r.Ports)
		}
		out.sides[dirIndex(In)] = s
	}
	if slices.Contains(types, networkingv1.PolicyTypeEgress) {
		s := &side{}
		for i, r := range egress {
			add(s, fmt.Sprintf("spec.egress[%d]", i), "to", r.To, r.Ports)
		}
		out.sides[dirIndex(Out)] = s
	}
	return out, errors.Join(errs...)
}

func readRule(namespace, peersAt string, peers []networkingv1.NetworkPolicyPeer,
	ports []networkingv1.NetworkPolicyPort) (r rule, err error) {
	for i, p := range peers {
		read, err := readPeer(namespace, p)
		if err != nil {
			return r, fmt.Errorf("%s[%d].%w", peersAt, i, err)
		}
		r.peers = append(r.peers, read)
	}
	for i, p := range ports {
		read, err := readPort(p)
		if err != nil {
			return r, fmt.Errorf("ports[%d].%w", i, err)
		}
		r.ports = append(r.ports, read)
	}
	return r, nil
}

func readPeer(namespace string, p networkingv1.NetworkPolicyPeer) (peer, error) {
	if p.IPBlock != nil {
		b, err := readBlock(p.IPBlock)
		return peer{block: b}, err
	}
	if p.PodSelector == nil && p.NamespaceSelector == nil {
		return peer{}, errors.New("podSelector: there is none, nor anything else that this version knows")
	}
	g := &group{namespace: namespace, pods: labels.Everything()}
	var err error
	if p.NamespaceSelector != nil {
		g.namespace = ""
		if g.namespaces, err = metav1.LabelSelectorAsSelector(p.NamespaceSelector); err != nil {
			return peer{}, fmt.Errorf("namespaceSelector: %w", err)
		}
	}
	if p.PodSelector != nil {
		if g.pods, err = metav1.LabelSelectorAsSelector(p.PodSelector); err != nil {
			return peer{}, fmt.Errorf("podSelector: %w", err)
		}
	}
	return peer{pods: g}, nil
}

func readBlock(b *networkingv1.IPBlock) (Block, error) {
	cidr, err := netip.ParsePrefix(b.CIDR)
	if err != nil {
		return Block{}, fmt.Errorf("ipBlock.cidr: %w", err)
	}
	out := Block{CIDR: cidr.Masked()}
	for _, text := range b.Except {
		except, err := netip.ParsePrefix(text)
		if err != nil {
			return Block{}, fmt.Errorf("ipBlock.except: %w", err)
		}
		out.Except = append(out.Except, except.Masked())
	}
	return out, nil
}

func readPort(p networkingv1.NetworkPolicyPort) (port, error) {
	const most = 1<<16 - 1
	out := port{proto: TCP}
	if p.Protocol != nil {
		if out.proto = ProtoOf(*p.Protocol); out.proto.String() != string(*p.Protocol) {
			return port{}, fmt.Errorf("protocol: %q is none of TCP, UDP and SCTP", *p.Protocol)
		}
	}
	switch {
	case p.Port == nil:
	case p.Port.Type == intstr.String:
		if out.name = p.Port.StrVal; out.name == "" {
			return port{}, errors.New("port: a name must not be empty")
		}
	default:
		low, high := p.Port.IntVal, p.Port.IntVal
		if p.EndPort != nil {
			high = *p.EndPort
		}
		if low < 1 || low > most {
			return port{}, fmt.Errorf("port: %d is not between 1 and %d", low, most)
		}
		if high < low || high > most {
			return port{}, fmt.Errorf("endPort: %d is not between %d and %d", high, low, most)
		}
		out.low, out.high = uint16(low), uint16(high)
	}
	return out, nil
}

// groups are those that the policy speaks of, in both directions.
func (p *policy) groups() (out []*group) {
	for _, s := range p.sides {
		if s == nil {
			continue
		}
		for _, r := range s.rules {
			for _, peer := range r.peers {
				if peer.pods != nil {
					out = append(out, peer.pods)
				}
			}
		}
	}
	return out
}

// namedPorts are the sets of the ports that the policy speaks of by name.
func (p *policy) namedPorts() (out []string) {
	for _, s := range p.sides {
		if s == nil {
			continue
		}
		for _, r := range s.rules {
			for _, port := range r.ports {
				if port.name != "" {
					out = append(out, port.set())
				}
			}
		}
	}
	return out
}
