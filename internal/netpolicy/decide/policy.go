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

// has tells whether a pod belongs to it. A namespace that is not known yet has no labels that anything could match, nor
// lacks any.
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
	if slices.Contains(types, networkingv1.PolicyTypeIngress) {
		s := &side{}
		for i, r := range ingress {
			if err := s.add(p.Namespace, r.From, r.Ports); err != nil {
				errs = append(errs, fmt.Errorf("spec.ingress[%d].from%w", i, err))
			}
		}
		out.sides[dirIndex(In)] = s
	}
	if slices.Contains(types, networkingv1.PolicyTypeEgress) {
		s := &side{}
		for i, r := range egress {
			if err := s.add(p.Namespace, r.To, r.Ports); err != nil {
				errs = append(errs, fmt.Errorf("spec.egress[%d].to%w", i, err))
			}
		}
		out.sides[dirIndex(Out)] = s
	}
	return out, errors.Join(errs...)
}

func (s *side) add(namespace string, peers []networkingv1.NetworkPolicyPeer,
	ports []networkingv1.NetworkPolicyPort) error {
	var r rule
	for i, p := range peers {
		read, err := readPeer(namespace, p)
		if err != nil {
			return fmt.Errorf("[%d].%w", i, err)
		}
		r.peers = append(r.peers, read)
	}
	for _, p := range ports {
		r.ports = append(r.ports, readPort(p))
	}
	s.rules = append(s.rules, r)
	return nil
}

func readPeer(namespace string, p networkingv1.NetworkPolicyPeer) (peer, error) {
	if p.IPBlock != nil {
		b, err := readBlock(p.IPBlock)
		return peer{block: b}, err
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

func readPort(p networkingv1.NetworkPolicyPort) port {
	out := port{proto: TCP}
	if p.Protocol != nil {
		out.proto = ProtoOf(*p.Protocol)
	}
	switch {
	case p.Port == nil:
	case p.Port.Type == intstr.String:
		out.name = p.Port.StrVal
	default:
		out.low = uint16(p.Port.IntVal)
		out.high = out.low
		if p.EndPort != nil {
			out.high = uint16(*p.EndPort)
		}
	}
	return out
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
