// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// PortMapping is one host port, in the words of CNI's portMappings capability.
type PortMapping struct {
	HostPort      int32  `json:"hostPort"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      string `json:"protocol"`
	HostIP        string `json:"hostIP,omitempty"`
}

// ErrPortConflict says that another pod holds a host port.
var ErrPortConflict = errors.New("host port is taken")

// hostPort is a checked PortMapping of one address family. The zero hostIP means every address of the machine.
type hostPort struct {
	proto  byte
	port   uint16
	hostIP netip.Addr
	to     netip.AddrPort
}

func (p hostPort) String() string {
	name := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp", unix.IPPROTO_SCTP: "sctp"}[p.proto]
	if p.hostIP.IsValid() {
		return fmt.Sprintf("%s/%s", netip.AddrPortFrom(p.hostIP, p.port), name)
	}
	return fmt.Sprintf("%d/%s", p.port, name)
}

// clashes says whether a packet could match both.
func (p hostPort) clashes(o hostPort) bool {
	return p.proto == o.proto && p.port == o.port && p.to.Addr().Is4() == o.to.Addr().Is4() &&
		(!p.hostIP.IsValid() || !o.hostIP.IsValid() || p.hostIP == o.hostIP)
}

// resolve checks mappings and spreads them over the pod's addresses. Mappings without a host port are left out.
func resolve(mappings []PortMapping, pod []netip.Addr) ([]hostPort, error) {
	var out []hostPort
	for i, m := range mappings {
		if m.HostPort == 0 {
			continue
		}
		bad := func(format string, args ...any) error {
			return fmt.Errorf("portMappings[%d]: %s", i, fmt.Sprintf(format, args...))
		}
		proto, ok := map[string]byte{"": unix.IPPROTO_TCP, "tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP,
			"sctp": unix.IPPROTO_SCTP}[strings.ToLower(m.Protocol)]
		if !ok {
			return nil, bad("protocol %q is not tcp, udp or sctp", m.Protocol)
		}
		for _, n := range []int32{m.HostPort, m.ContainerPort} {
			if n < 1 || n > 65535 {
				return nil, bad("port %d is not between 1 and 65535", n)
			}
		}
		var hostIP netip.Addr
		if m.HostIP != "" {
			var err error
			if hostIP, err = netip.ParseAddr(m.HostIP); err != nil {
				return nil, bad("hostIP %q is not an IP address", m.HostIP)
			}
			hostIP = hostIP.Unmap()
		}
		before := len(out)
		for _, a := range pod {
			if hostIP.IsValid() && hostIP.Is4() != a.Is4() {
				continue
			}
			p := hostPort{proto: proto, port: uint16(m.HostPort), to: netip.AddrPortFrom(a, uint16(m.ContainerPort))}
			if hostIP.IsValid() && !hostIP.IsUnspecified() {
				p.hostIP = hostIP
			}
			out = append(out, p)
		}
		if len(out) == before {
			return nil, bad("the pod has no address of the same family as hostIP %s", m.HostIP)
		}
	}
	return out, nil
}

// element is the map entry of p, marked as owner's.
func (p hostPort) element(owner Attachment) nftables.SetElement {
	var key []byte
	if p.hostIP.IsValid() {
		key = p.hostIP.AsSlice()
	}
	key = append(key, p.proto, 0, 0, 0)
	key = append(binary.BigEndian.AppendUint16(key, p.port), 0, 0)
	val := append(binary.BigEndian.AppendUint16(p.to.Addr().AsSlice(), p.to.Port()), 0, 0)
	return nftables.SetElement{Key: key, Val: val, Comment: owner.String()}
}

// parseElement is the way back. Elements of another make are not ours to touch: ok is false.
func parseElement(e nftables.SetElement) (p hostPort, owner Attachment, ok bool) {
	addrLen := len(e.Val) - 4
	ipLen := len(e.Key) - 8
	if (addrLen != 4 && addrLen != 16) || (ipLen != 0 && ipLen != addrLen) {
		return p, owner, false
	}
	if ipLen > 0 {
		p.hostIP, _ = netip.AddrFromSlice(e.Key[:ipLen])
	}
	p.proto = e.Key[ipLen]
	p.port = binary.BigEndian.Uint16(e.Key[ipLen+4:])
	a, _ := netip.AddrFromSlice(e.Val[:addrLen])
	p.to = netip.AddrPortFrom(a, binary.BigEndian.Uint16(e.Val[addrLen:]))
	owner, ok = parseAttachment(e.Comment)
	return p, owner, ok
}

// held is a host port as found in the kernel.
type held struct {
	hostPort
	owner Attachment
	table string
	set   *nftables.Set
	elem  nftables.SetElement
}

// hostPorts lists the entries of our maps. A table that is not there has none.
func (t *table) hostPorts() ([]held, error) {
	var out []held
	for _, f := range []family{ipv4(), ipv6()} {
		for _, withIP := range []bool{false, true} {
			set := t.hostPortMap(f, withIP)
			elems, err := t.conn.GetSetElements(set)
			if missingErr(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("nftables: list host ports of table %s: %w", t.t.Name, err)
			}
			for _, e := range elems {
				if p, owner, ok := parseElement(e); ok {
					out = append(out, held{p, owner, t.t.Name, set, e})
				}
			}
		}
	}
	return out, nil
}

// missingErr recognises "no such table or set"; the library drops the errno on the way, hence the text.
func missingErr(err error) bool {
	return err != nil && (errors.Is(err, unix.ENOENT) || strings.Contains(err.Error(), unix.ENOENT.Error()))
}

// everywhere lists the host ports of every Wherry table on this machine, other servers' too.
func (t *table) everywhere() ([]held, error) {
	tables, err := t.conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, fmt.Errorf("nftables: list tables: %w", err)
	}
	var out []held
	for _, other := range tables {
		if !strings.HasPrefix(other.Name, tablePrefix) {
			continue
		}
		more, err := (&table{t.conn, other}).hostPorts()
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// publish adds ports for owner, or none of them when one is taken: then the error is ErrPortConflict and names the
// holder.
func (t *table) publish(owner Attachment, ports []hostPort) error {
	unlock, err := lockHostPorts()
	if err != nil {
		return err
	}
	defer unlock()
	there, err := t.everywhere()
	if err != nil {
		return err
	}
	for i, p := range ports {
		for _, o := range ports[:i] {
			if p.clashes(o) {
				return fmt.Errorf("%w: the pod requests %s twice", ErrPortConflict, p)
			}
		}
		for _, h := range there {
			if p.clashes(h.hostPort) {
				return fmt.Errorf("%w: %s is forwarded to %s (sandbox %s, table %s)", ErrPortConflict, p, h.to,
					h.owner.ContainerID, h.table)
			}
		}
	}
	for _, p := range ports {
		if err := t.conn.SetAddElements(t.hostPortMap(familyOf(p.to.Addr()), p.hostIP.IsValid()),
			[]nftables.SetElement{p.element(owner)}); err != nil {
			return err
		}
	}
	if err := t.conn.Flush(); err != nil {
		return fmt.Errorf("nftables: publish host ports in table %s: %w (is the pod network set up?)", t.t.Name, err)
	}
	return forgetUDP(ports)
}

// unpublish removes the host ports whose owner keep rejects.
func (t *table) unpublish(keep func(Attachment) bool) error {
	// Locked, as a listing that runs into another's change may miss what it is after.
	unlock, err := lockHostPorts()
	if err != nil {
		return err
	}
	defer unlock()
	there, err := t.hostPorts()
	if err != nil {
		return err
	}
	var n int
	for _, h := range there {
		if keep(h.owner) {
			continue
		}
		if err := t.conn.SetDeleteElements(h.set, []nftables.SetElement{{Key: h.elem.Key,
			Val: h.elem.Val}}); err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		return nil
	}
	if err := t.conn.Flush(); err != nil {
		return fmt.Errorf("nftables: remove host ports from table %s: %w", t.t.Name, err)
	}
	return nil
}

// lockHostPorts makes look-then-publish one step among all plug-ins of this machine, whichever server they belong to.
func lockHostPorts() (unlock func(), err error) {
	f, err := os.OpenFile("/run/wherry-hostports.lock", os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the host ports: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock of the host ports: %w", err)
		}
	}
}

// udpTo matches tracked UDP flows to one of some ports of the machine.
type udpTo map[uint16]bool

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (u udpTo) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	return flow.Forward.Protocol == unix.IPPROTO_UDP && u[flow.Forward.DstPort]
}

// forgetUDP drops what the kernel remembers of UDP flows to the ports: a client that has been sending all along would
// else go on to be sent where its flow went before, to nobody or to a pod that is gone.
func forgetUDP(ports []hostPort) error {
	want := map[netlink.InetFamily]udpTo{}
	for _, p := range ports {
		if p.proto != unix.IPPROTO_UDP {
			continue
		}
		f := netlink.InetFamily(unix.AF_INET)
		if p.to.Addr().Is6() {
			f = unix.AF_INET6
		}
		if want[f] == nil {
			want[f] = udpTo{}
		}
		want[f][p.port] = true
	}
	for f, filter := range want {
		if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, f, filter); err != nil &&
			!errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove old UDP flows to the host ports: %w", err)
		}
	}
	return nil
}
