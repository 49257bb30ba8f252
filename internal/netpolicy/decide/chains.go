// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"strings"
)

// chains are those of a policy in one direction, by name. A policy that lets nothing pass has none.
func (w *World) chains(p *policy, d Direction) map[string]Chain {
	s := p.side(d)
	if s == nil || len(s.rules) == 0 {
		return nil
	}
	name := p.chain(d)
	out := map[string]Chain{}
	var rules []Rule
	for i, r := range s.rules {
		own, deeper := r.flatten(fmt.Sprintf("%s/%d", name, i))
		rules = append(rules, own...)
		if d == Out {
			rules = append(rules, w.toNames(r)...)
		}
		if deeper != nil {
			out[fmt.Sprintf("%s/%d", name, i)] = newChain(d, deeper)
		}
	}
	out[name] = newChain(d, rules)
	return out
}

// flatten makes a rule's peers and ports into rules of the kernel. Where there are several of both, the ports are a
// chain of their own, so that there are as many rules as peers and ports together, not their product.
func (r rule) flatten(ports string) (rules, deeper []Rule) {
	match := func(out *Rule, p port) {
		out.Proto, out.Low, out.High = p.proto, p.low, p.high
		if p.name != "" {
			out.Named = p.set()
		}
	}
	if len(r.peers) > 1 && len(r.ports) > 1 {
		for _, p := range r.ports {
			one := Rule{Then: Accept}
			match(&one, p)
			deeper = append(deeper, one)
		}
		for _, p := range r.peers {
			rules = append(rules, p.rule(ports))
		}
		return rules, deeper
	}
	peers := []Rule{{Then: Accept}}
	if len(r.peers) > 0 {
		peers = nil
		for _, p := range r.peers {
			peers = append(peers, p.rule(Accept))
		}
	}
	for _, peer := range peers {
		if len(r.ports) == 0 {
			rules = append(rules, peer)
		}
		for _, p := range r.ports {
			one := peer
			match(&one, p)
			rules = append(rules, one)
		}
	}
	return rules, nil
}

func (p peer) rule(then string) Rule {
	if p.pods != nil {
		return Rule{Peers: p.pods.set(), Then: then}
	}
	return Rule{Block: p.block, Then: then}
}

// toNames are the rules by which packets reach the name server, if the rule lets them: it is asked at a service's
// address and port 53, and listens elsewhere.
func (w *World) toNames(r rule) (out []Rule) {
	if w.names == nil {
		return nil
	}
	for _, proto := range []Proto{UDP, TCP} {
		if r.passes(w, w.names.end(), proto, w.names.Asked.Port(), w.names.portName(proto)) {
			out = append(out, Rule{Proto: proto, Names: true, Then: Accept})
		}
	}
	return out
}

// profile is the chain for pods that these policies isolate, and its name.
func (w *World) profile(d Direction, isolating []*policy) (string, Chain) {
	var rules []Rule
	var names []string
	for _, p := range isolating {
		if len(p.side(d).rules) > 0 {
			names = append(names, p.chain(d))
			rules = append(rules, Rule{Then: p.chain(d)})
		}
	}
	rules = append(rules, Rule{Then: Deny})
	return "pods-" + d.String() + "/" + Print(strings.Join(names, "\x00")), newChain(d, rules)
}
