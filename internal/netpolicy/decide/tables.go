// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// Direction is that of a connection as its pod sees it.
type Direction bool

// The directions.
const (
	In  Direction = false
	Out Direction = true
)

// String is the word that names in the kernel begin with.
func (d Direction) String() string {
	if d == Out {
		return "out"
	}
	return "in"
}

// Proto is a protocol's number; 0 is any.
type Proto uint8

// Protocols with ports.
const (
	TCP  Proto = unix.IPPROTO_TCP
	UDP  Proto = unix.IPPROTO_UDP
	SCTP Proto = unix.IPPROTO_SCTP
)

// ProtoOf is a protocol as the API names it. The default is TCP.
func ProtoOf(p corev1.Protocol) Proto {
	switch p {
	case corev1.ProtocolUDP:
		return UDP
	case corev1.ProtocolSCTP:
		return SCTP
	}
	return TCP
}

func (p Proto) String() string {
	switch p {
	case TCP:
		return "TCP"
	case UDP:
		return "UDP"
	case SCTP:
		return "SCTP"
	}
	return fmt.Sprint(uint8(p))
}

// The sets that are always there.
const (
	SetIn       = "in"       // each pod's address, and the profile that judges what comes to it
	SetOut      = "out"      // the same for what it sends
	SetIsolated = "isolated" // addresses of pods that are not free in some direction
	SetSelf     = "self"     // pairs of a pod's address with itself
	SetNames    = "names"    // where the name server listens
)

// Prefixes of the names of the others.
const (
	prefixPeers = "peers/"
	prefixPort  = "port/"
)

// Fixed are the sets that are always there.
func Fixed() []string { return []string{SetIn, SetOut, SetIsolated, SetSelf, SetNames} }

// Shape is what the elements of a set are.
type Shape int

// The shapes.
const (
	Addr     Shape = iota
	AddrMap        // addresses that lead to a chain
	AddrPair       // two addresses
	AddrPort       // address, protocol and port
)

// ShapeOf is that of the set of a name.
func ShapeOf(set string) Shape {
	switch {
	case set == SetIn || set == SetOut:
		return AddrMap
	case set == SetSelf:
		return AddrPair
	case set == SetNames || strings.HasPrefix(set, prefixPort):
		return AddrPort
	}
	return Addr
}

// Elem is an element of a set; what its shape does not have is zero.
type Elem struct {
	Addr, Other netip.Addr
	Proto       Proto
	Port        uint16
}

// Accept is where an element or a rule leads that lets pass.
const Accept = "accept"

// Deny is the chain that lets pass only what a pod sends to itself.
const Deny = "deny"

// Set is elements, and where they lead in a map.
type Set map[Elem]string

// Block is a network without some parts of it; the zero value is none.
type Block struct {
	CIDR   netip.Prefix
	Except []netip.Prefix
}

// Has reports whether an address is in it.
func (b Block) Has(a netip.Addr) bool {
	return b.CIDR.IsValid() && b.CIDR.Contains(a) &&
		!slices.ContainsFunc(b.Except, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Rule is a rule of a chain: whatever it says must hold.
type Rule struct {
	Peers     string // set that the other end's address is in
	Block     Block  // that the other end's address is in
	Proto     Proto
	Low, High uint16 // destination ports; 0: any
	Named     string // set that destination, protocol and port are in
	Names     bool   // the destination is the name server
	Then      string // Accept, or the chain to look into
}

// Chain is one of a direction.
type Chain struct {
	Dir   Direction
	Rules []Rule
	Print string // what it was made from
}

func newChain(dir Direction, rules []Rule) Chain {
	return Chain{Dir: dir, Rules: rules, Print: Print(fmt.Sprintf("%v %+v", dir, rules))}
}

// Print is a fingerprint of texts.
func Print(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// Tables are what the kernel should have. No policies, no tables.
type Tables struct {
	Chains map[string]Chain
	Sets   map[string]Set
}

// There is what a kernel has: of chains only the fingerprint of what they are made from.
type There struct {
	Chains map[string]string
	Sets   map[string]Set
}

// There is what a kernel that was made equal to t has.
func (t Tables) There() There {
	out := There{Chains: map[string]string{}, Sets: map[string]Set{}}
	for name, c := range t.Chains {
		out.Chains[name] = c.Print
	}
	for name, s := range t.Sets {
		out.Sets[name] = maps.Clone(s)
	}
	return out
}

// Touched names what may have changed since something was last equal; nil is all.
type Touched struct{ Chains, Sets map[string]bool }

// Change is what makes of one state another, in one transaction. Lists are sorted.
type Change struct {
	AddSets, DropSets   []string
	AddChains           []string // not there at all
	SetChains           []string // those that get other rules: new ones, and ones that are there
	DropChains          []string
	AddElems, DropElems map[string][]Elem // one that leads elsewhere is in both; those of sets that go are in neither
}

// Empty says that there is nothing to do.
func (c Change) Empty() bool {
	return len(c.AddSets)+len(c.DropSets)+len(c.SetChains)+len(c.DropChains)+len(c.AddElems)+len(c.DropElems) == 0
}

// Diff says what is to be done to a kernel that has one thing and should have another.
func Diff(have There, want Tables, touched *Touched) Change {
	c := Change{AddElems: map[string][]Elem{}, DropElems: map[string][]Elem{}}
	for _, name := range candidates(have.Sets, want.Sets, touched, func(t *Touched) map[string]bool { return t.Sets }) {
		was, there := have.Sets[name]
		is, wanted := want.Sets[name]
		if !wanted {
			if there {
				c.DropSets = append(c.DropSets, name)
			}
			continue
		}
		if !there {
			c.AddSets = append(c.AddSets, name)
		}
		if l := lacking(is, was); len(l) > 0 {
			c.AddElems[name] = l
		}
		if l := lacking(was, is); len(l) > 0 {
			c.DropElems[name] = l
		}
	}
	for _, name := range candidates(have.Chains, want.Chains, touched,
		func(t *Touched) map[string]bool { return t.Chains }) {
		was, there := have.Chains[name]
		is, wanted := want.Chains[name]
		switch {
		case !wanted && there:
			c.DropChains = append(c.DropChains, name)
		case wanted && !there:
			c.AddChains = append(c.AddChains, name)
			c.SetChains = append(c.SetChains, name)
		case wanted && was != is.Print:
			c.SetChains = append(c.SetChains, name)
		}
	}
	return c
}

// candidates are the names to look at, sorted.
func candidates[H, W any](have map[string]H, want map[string]W, touched *Touched,
	of func(*Touched) map[string]bool) []string {
	if touched != nil {
		return slices.Sorted(maps.Keys(of(touched)))
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(have)), maps.Keys(want))
	slices.Sort(names)
	return slices.Compact(names)
}

// lacking are the elements of one set that another has not, or leads elsewhere.
func lacking(of, in Set) (out []Elem) {
	for e, to := range of {
		if other, there := in[e]; !there || other != to {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b Elem) int {
		return cmp.Or(a.Addr.Compare(b.Addr), a.Other.Compare(b.Other), cmp.Compare(a.Proto, b.Proto),
			cmp.Compare(a.Port, b.Port))
	})
	return out
}
