// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Services says what becomes of packets to the addresses of services, those of pods on the bridge and those of the
// machine itself, which are those of pods on the host's network too.
type Services struct {
	// API is the address of service kubernetes, Server where its API server listens. A server on the machine's loopback
	// is reached too. Both are of one address family.
	API, Server netip.AddrPort
	// Advertised is the address that the endpoints of service kubernetes have, if it is not where the API server
	// listens: pods are led to the server there too, and nobody else is. The zero value leads nobody.
	Advertised netip.AddrPort
	// Names is the address of the service that pods ask for names, Resolver where they are answered, over UDP and TCP,
	// on an address of the machine's own. The zero value carries none.
	Names, Resolver netip.AddrPort
	// Pods is the cgroup of this server's pods: those on the host's network reach its API server, whichever servers
	// there are besides. The zero value says that it is not known; the machine's connections all go where the server
	// says that has come first.
	Pods Cgroup
	// Refused are the networks of service addresses: whoever sends to one that nobody carries learns at once that
	// nobody is there, and the packet does not leave the machine. None refuses nothing: somebody else carries services
	// then. Where the pod network lies in one, pods are no services.
	Refused []netip.Prefix
	// Proxied says that somebody carries the other services: then the machine needs a way to all of Refused.
	Proxied bool
}

// ways are what the machine needs routes to. Where a network of its own lies in that of services, the addresses
// of the API server and of names are left.
func (s Services) ways() (out []netip.Prefix) {
	for _, r := range s.Refused {
		if s.Proxied && r.Addr().Is4() {
			out = append(out, r.Masked())
		}
	}
	for _, a := range []netip.Addr{s.API.Addr(), s.Names.Addr()} {
		if a.Is4() {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out
}

// Cgroup is one of the unified hierarchy: its id, which is its folder's inode, and its depth below the root.
type Cgroup struct {
	ID    uint64
	Depth uint32
}

// validate says what cannot be carried.
func (s Services) validate() error {
	switch {
	case s.Names.IsValid() && (!s.Resolver.IsValid() || s.Resolver.Addr().IsLoopback() ||
		s.Names.Addr().Is4() != s.Resolver.Addr().Is4()):
		return fmt.Errorf("service address %s: names are answered at %s, which cannot be reached by it: choose a --service-cidr of the pod network's address family, or --dns=none", s.Names, s.Resolver)
	case !s.API.IsValid():
		return nil
	case !s.Server.IsValid() || s.Server.Addr().IsUnspecified():
		return fmt.Errorf("service address %s: no address of the API server is known", s.API)
	case s.API.Addr().Is4() != s.Server.Addr().Is4():
		return fmt.Errorf("service address %s and the API server's %s are of different address families: change the server's --bind-address or --service-cidr so that they match", s.API, s.Server)
	case s.Advertised.IsValid() && s.Advertised.Addr().Is4() != s.Server.Addr().Is4():
		return fmt.Errorf("address %s of service kubernetes' endpoints and the API server's %s are of different address families", s.Advertised, s.Server)
	case s.API.Addr().Is6() && s.Server.Addr().IsLoopback():
		return fmt.Errorf("service address %s: over IPv6, pods cannot reach an API server on %s: choose another --bind-address", s.API, s.Server.Addr())
	}
	return nil
}

// afterOthers puts our translation of service addresses behind a kube-proxy's: what that has translated stays as it is.
const afterOthers = 10

// Carry installs what s says, in place of what was installed before, in one transaction. It is for a network that is
// set up, and outlives the server, as pods do. The chains, in our table:
//
//	chain services            { ip daddr <API> tcp dport <port> dnat ip to <server>
//	                            ip daddr <names> udp dport <port> dnat ip to <resolver>; and tcp }
//	chain services-own        { jump services; ip daddr <advertised> tcp dport <port> dnat ip to <server> }
//	chain services-prerouting { nat prerouting dstnat+10:  iifname <bridge> jump services-own }
//	chain services-pods       { nat output dstnat+9:       socket cgroupv2 level <depth> <pods> jump services-own }
//	chain services-output     { nat output dstnat+10:      jump services }
//	chain services-forward    { filter forward:  iifname <bridge> ip daddr <refused> reject
//	                                             oifname lo ip daddr <refused> reject }
//	chain services-host       { filter output:   fib daddr type != local ct state new ip daddr <refused> reject }
//
// What the machine sends is judged more mildly: only connections that it begins are refused, and none to a part of the
// network that it has a route of its own to. Those routes are returned: services there are not refused to pods on the
// host's network.
func Carry(c Config, s Services) (ownRoutes []netip.Prefix, err error) {
	if err := errors.Join(c.Validate(), s.validate()); err != nil {
		return nil, err
	}
	return carry(c, s)
}

// carry is Carry of what is valid.
func carry(c Config, s Services) (ownRoutes []netip.Prefix, err error) {
	routes, err := otherRoutes(c.Bridge)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		if slices.ContainsFunc(s.Refused, r.dst.Overlaps) {
			ownRoutes = append(ownRoutes, r.dst)
		}
	}
	t, err := openTable(c.Bridge)
	if err != nil {
		return nil, err
	}
	defer t.close()
	err = t.services(c, s, ownRoutes)
	if err != nil && s.Pods != (Cgroup{}) { // perhaps the kernel cannot tell sockets by cgroup
		s.Pods = Cgroup{}
		err = t.services(c, s, ownRoutes)
	}
	if err != nil {
		return nil, err
	}
	if s.Server.Addr().IsLoopback() || s.Proxied { // between the bridge and 127.0.0.1; see the guard chain
		if err := sysctl("1", "ipv4", "conf", c.Bridge, "route_localnet"); err != nil {
			return nil, err
		}
	}
	ways := map[string]bool{}
	for _, way := range s.ways() {
		ways[way.String()] = true
	}
	return ownRoutes, errors.Join(routeHere(c, s), forgetRoutes(c.Bridge, func(r netlink.Route) bool {
		return toServices(r) && (r.Dst == nil || !ways[r.Dst.String()])
	}))
}

// services replaces the rules about services.
func (t *table) services(c Config, s Services, own []netip.Prefix) error {
	t.conn.AddTable(t.t)
	bridge := device(expr.MetaKeyIIFNAME, expr.CmpOpEq, c.Bridge)
	rule := t.chain("services", "", nil, nil)
	if s.API.IsValid() {
		rule(toService(s.API, isTCP()), toAddress(s.Server))
	}
	if s.Names.IsValid() {
		rule(toService(s.Names, isUDP()), toAddress(s.Resolver))
		rule(toService(s.Names, isTCP()), toAddress(s.Resolver))
	}
	jump := verdict(expr.VerdictJump, "services")
	ofPods := t.chain("services-own", "", nil, nil)
	ofPods(jump)
	if s.API.IsValid() && s.Advertised.IsValid() {
		ofPods(toService(s.Advertised, isTCP()), toAddress(s.Server))
	}
	toOwn := verdict(expr.VerdictJump, "services-own")
	prio := nftables.ChainPriorityRef(*nftables.ChainPriorityNATDest + afterOthers)
	pods := t.chain("services-pods", nftables.ChainTypeNAT, nftables.ChainHookOutput,
		nftables.ChainPriorityRef(*prio-1))
	if s.Pods != (Cgroup{}) {
		pods(ofCgroup(s.Pods), toOwn)
	}
	t.chain("services-prerouting", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, prio)(bridge, toOwn)
	t.chain("services-output", nftables.ChainTypeNAT, nftables.ChainHookOutput, prio)(jump)

	forward := t.chain("services-forward", nftables.ChainTypeFilter, nftables.ChainHookForward,
		nftables.ChainPriorityFilter)
	host := t.chain("services-host", nftables.ChainTypeFilter, nftables.ChainHookOutput, nftables.ChainPriorityFilter)
	if len(s.Refused) > 0 {
		host(local(), verdict(expr.VerdictAccept, ""))
	}
	for _, refused := range s.Refused {
		f := familyOf(refused.Addr())
		to := append(isFamily(f), within(f, f.dstAt, refused, true)...)
		to = append(to, notWithin(f, c.CIDRs, refused)...)
		begun := append(slices.Clone(to), notWithin(f, own, refused)...)
		for _, how := range [][]expr.Any{append(isTCP(), reset()), {unreachable()}} {
			forward(bridge, to, how)
			// What others send takes the machine's own way, and would go round in it.
			forward(device(expr.MetaKeyOIFNAME, expr.CmpOpEq, "lo"), to, how)
			host(isNew(), begun, how)
		}
	}
	if err := t.conn.Flush(); err != nil {
		return fmt.Errorf("nftables rejected the rules for service addresses: %w (they need CONFIG_NFT_REJECT_INET and CONFIG_NFT_CT)", err)
	}
	return nil
}

// notWithin matches packets that go to none of those networks that overlap with the one of the rule.
func notWithin(f family, networks []netip.Prefix, of netip.Prefix) (out []expr.Any) {
	for _, p := range networks {
		if p.Overlaps(of) {
			out = append(out, within(f, f.dstAt, p, false)...)
		}
	}
	return out
}

// routeMark is the protocol number of routes of ours, to know them by. Those of one network have a metric of their own
// too.
const routeMark = 0x77

func routeMetric(bridge string) int {
	h := fnv.New32a()
	h.Write([]byte(bridge))
	return int(h.Sum32()>>1 | 1<<16)
}

// routeHere gives the machine itself a way to services' addresses: without one, on a machine without a default route, a
// connection fails before any rule sees it. Nothing takes that way: what is not translated is refused. It leads to lo
// and not to the bridge, where the kernel would tell pods to look for the address beside them. For IPv6 such a route
// would refuse.
func routeHere(c Config, s Services) error {
	for _, way := range s.ways() {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("route to service address %s: %w", way, err)
		}
		covered, err := HostRoutes(c.Bridge)
		if err != nil {
			return err
		}
		if covered(way) {
			continue
		}
		r := &netlink.Route{LinkIndex: lo.Attrs().Index, Dst: ipNet(way), Protocol: routeMark,
			Priority: routeMetric(c.Bridge)}
		for _, p := range c.CIDRs {
			if p.Addr().Is4() {
				r.Src = Gateway(p).AsSlice()
			}
		}
		if err := netlink.RouteReplace(r); err != nil {
			return fmt.Errorf("route to service address %s: %w", way, err)
		}
	}
	return nil
}

// toService matches a protocol to an address and port.
func toService(a netip.AddrPort, protocol []expr.Any) []expr.Any {
	f := familyOf(a.Addr())
	out := append(isFamily(f), within(f, f.dstAt, netip.PrefixFrom(a.Addr(), a.Addr().BitLen()), true)...)
	out = append(out, protocol...)
	return append(out,
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: binary.BigEndian.AppendUint16(nil, a.Port())},
	)
}

func isTCP() []expr.Any { return isProtocol(unix.IPPROTO_TCP) }
func isUDP() []expr.Any { return isProtocol(unix.IPPROTO_UDP) }

func isProtocol(number byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: []byte{number}},
	}
}

// toAddress rewrites the destination.
func toAddress(a netip.AddrPort) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: reg1, Data: a.Addr().AsSlice()},
		&expr.Immediate{Register: unix.NFT_REG_2, Data: binary.BigEndian.AppendUint16(nil, a.Port())},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(familyOf(a.Addr()).proto), RegAddrMin: reg1,
			RegProtoMin: unix.NFT_REG_2},
	}
}

// ofCgroup matches what processes in a cgroup send, or in one below it.
func ofCgroup(c Cgroup) []expr.Any {
	id := make([]byte, 8)
	binary.NativeEndian.PutUint64(id, c.ID)
	return []expr.Any{
		&expr.Socket{Key: expr.SocketKeyCgroupv2, Level: c.Depth, Register: reg1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: id},
	}
}

// isNew matches packets that begin a connection.
func isNew() []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: reg1},
		&expr.Bitwise{SourceRegister: reg1, DestRegister: reg1, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitNEW), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: reg1, Data: make([]byte, 4)},
	}
}

// reset and unreachable both notify the sender at once. Only the first one is not held back when many ask.
func reset() expr.Any { return &expr.Reject{Type: unix.NFT_REJECT_TCP_RST} }

func unreachable() expr.Any {
	return &expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}
}
