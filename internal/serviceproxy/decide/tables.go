// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Refuse is the chain that refuses a client at once. Every table has it.
const Refuse = "refuse"

// Proto is a transport protocol by its number.
type Proto uint8

// The protocols of services.
const (
	TCP  Proto = 6
	UDP  Proto = 17
	SCTP Proto = 132
)

// String is as in Kubernetes' words, in small letters.
func (p Proto) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case SCTP:
		return "sctp"
	}
	return fmt.Sprint(uint8(p))
}

// Place says who may use an address of a service, and so in which map it stands.
type Place uint8

const (
	// Cluster: pods and the machine itself.
	Cluster Place = iota + 1
	// External: whoever reaches the machine.
	External
	// NodePort: likewise, at any address of the machine; Addr is not set.
	NodePort
)

// Key is an entry of one of the maps: what is sent here goes to a chain.
type Key struct {
	Place Place
	Six   bool // of IPv6
	Addr  netip.Addr
	Proto Proto
	Port  uint16
}

// String is for people.
func (k Key) String() string {
	if k.Place == NodePort {
		family := 4
		if k.Six {
			family = 6
		}
		return fmt.Sprintf("node port %d/%s (IPv%d)", k.Port, k.Proto, family)
	}
	return fmt.Sprintf("%s/%s", netip.AddrPortFrom(k.Addr, k.Port), k.Proto)
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Place, b.Place), a.Addr.Compare(b.Addr), cmp.Compare(a.Port, b.Port),
		cmp.Compare(a.Proto, b.Proto), compareBools(a.Six, b.Six))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// End is where a connection may go. In a chain with affinity, Chain is the chain of this end, and Clients the set of
// those who have been there.
type End struct {
	At             netip.AddrPort
	Chain, Clients string
}

// Chain is what is done with the first packet of a connection. It is one of three things: with Ends and without a
// Timeout, one of them is chosen at random; with a Timeout, that at which the client has been, else one at random;
// with Remember, the client is put into that set, and the packet sent to the only end. In each, Sources and Inside
// come before.
type Chain struct {
	Six bool
	// Sources are the only ones that are let in; none: all are.
	Sources []netip.Prefix
	// Inside is where packets from pods and from the machine go instead; empty: nowhere else.
	Inside   string
	Ends     []End
	Timeout  time.Duration
	Remember string
	// Print is the fingerprint of all this.
	Print string
}

// String is all there is of the chain: two with the same text do the same.
func (c Chain) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "six=%t sources=%v inside=%s timeout=%s remember=%s", c.Six, c.Sources, c.Inside, c.Timeout,
		c.Remember)
	for _, e := range c.Ends {
		fmt.Fprintf(&b, " %s>%s>%s", e.At, e.Chain, e.Clients)
	}
	return b.String()
}

// Print is the fingerprint of a text.
func Print(text ...string) string {
	sum := fnv.New64a()
	for _, t := range text {
		fmt.Fprintf(sum, "%q", t)
	}
	return fmt.Sprintf("%016x", sum.Sum64())
}

// Beyond is an end that is not on this machine: the answer comes back only if it is asked in the machine's name.
type Beyond struct {
	At    netip.AddrPort
	Proto Proto
}

// Tables are all that the kernel should have.
type Tables struct {
	Chains  map[string]Chain
	Clients map[string]bool // sets of clients, by name; whether of IPv6
	Keys    map[Key]string  // the chain that each goes to
	Beyond  map[Beyond]bool
}

// Empty says that there is nothing to be carried.
func (t Tables) Empty() bool { return len(t.Keys) == 0 }

// There is what a kernel has, or should have: of chains only the fingerprint of what they are made from.
type There struct {
	Chains  map[string]string
	Clients map[string]bool
	Keys    map[Key]string
	Beyond  map[Beyond]bool
}

// There is what a kernel that was made equal to t has.
func (t Tables) There() There {
	chains := make(map[string]string, len(t.Chains))
	for name, c := range t.Chains {
		chains[name] = c.Print
	}
	return There{Chains: chains, Clients: t.Clients, Keys: t.Keys, Beyond: t.Beyond}
}

// Change is what makes of one state another, in one transaction. Lists are sorted.
type Change struct {
	AddClients, DropClients []string
	AddChains               []string // not there at all
	SetChains               []string // those that get other rules: new ones, and ones that are there
	DropChains              []string
	AddKeys, DropKeys       []Key // one that leads elsewhere is in both
	AddBeyond, DropBeyond   []Beyond
}

// Empty says that there is nothing to do.
func (c Change) Empty() bool {
	return len(c.AddClients)+len(c.DropClients)+len(c.SetChains)+len(c.DropChains)+len(c.AddKeys)+len(c.DropKeys)+
		len(c.AddBeyond)+len(c.DropBeyond) == 0
}

// Diff says what is to be done to a kernel that has one thing and should have another.
func Diff(have, want There) Change {
	var c Change
	for name, six := range want.Clients {
		if was, there := have.Clients[name]; !there || was != six {
			c.AddClients = append(c.AddClients, name)
		}
	}
	for name, six := range have.Clients {
		if is, wanted := want.Clients[name]; !wanted || is != six {
			c.DropClients = append(c.DropClients, name)
		}
	}
	for name, chain := range want.Chains {
		was, there := have.Chains[name]
		if !there {
			c.AddChains = append(c.AddChains, name)
		}
		if !there || was != chain {
			c.SetChains = append(c.SetChains, name)
		}
	}
	for name := range have.Chains {
		if _, wanted := want.Chains[name]; !wanted {
			c.DropChains = append(c.DropChains, name)
		}
	}
	for key, chain := range want.Keys {
		if have.Keys[key] != chain {
			c.AddKeys = append(c.AddKeys, key)
		}
	}
	for key, chain := range have.Keys {
		if want.Keys[key] != chain {
			c.DropKeys = append(c.DropKeys, key)
		}
	}
	for b := range want.Beyond {
		if !have.Beyond[b] {
			c.AddBeyond = append(c.AddBeyond, b)
		}
	}
	for b := range have.Beyond {
		if !want.Beyond[b] {
			c.DropBeyond = append(c.DropBeyond, b)
		}
	}
	for _, names := range [][]string{c.AddClients, c.DropClients, c.AddChains, c.SetChains, c.DropChains} {
		slices.Sort(names)
	}
	slices.SortFunc(c.AddKeys, compareKeys)
	slices.SortFunc(c.DropKeys, compareKeys)
	slices.SortFunc(c.AddBeyond, compareBeyond)
	slices.SortFunc(c.DropBeyond, compareBeyond)
	return c
}

func compareBeyond(a, b Beyond) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Proto, b.Proto)) }

// Merge puts the parts of services together. Of several that want the same address and port the oldest has it, and the
// others are returned by [Lost].
func Merge(parts []*Part) Tables {
	t := Tables{Chains: map[string]Chain{}, Clients: map[string]bool{}, Keys: map[Key]string{},
		Beyond: map[Beyond]bool{}}
	for _, p := range byAge(parts) {
		for key, chain := range p.Keys {
			if _, taken := t.Keys[key]; !taken {
				t.Keys[key] = chain
			}
		}
		maps.Copy(t.Chains, p.Chains)
		maps.Copy(t.Clients, p.Clients)
		maps.Copy(t.Beyond, p.Beyond)
	}
	return t
}

// Loss is an address and port that a service wants and another has.
type Loss struct {
	Key        Key
	Loser, Has string // namespace/name
}

// Lost names what [Merge] does not give to those who want it.
func Lost(parts []*Part) (out []Loss) {
	has := map[Key]string{}
	for _, p := range byAge(parts) {
		for _, key := range slices.SortedFunc(maps.Keys(p.Keys), compareKeys) {
			if other, taken := has[key]; taken {
				out = append(out, Loss{Key: key, Loser: p.Name, Has: other})
			} else {
				has[key] = p.Name
			}
		}
	}
	return out
}

// byAge sorts a copy: the oldest first.
func byAge(parts []*Part) []*Part {
	return slices.SortedFunc(slices.Values(parts), func(a, b *Part) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
}
