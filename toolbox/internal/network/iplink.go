// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// link is what the kernel says of an interface beside what Go's library knows. /sys would have it too, but that of
// another network namespace, where one was entered without its mounts.
type link struct {
	flags uint32
	peer  uint32 // the index of its other end, or of what it is made on; 0 for none
	apart bool   // that is in another network namespace
	queue uint32 // the length of its queue
	qdisc string
	brd   net.HardwareAddr
	state byte
}

// flagNames are the flags that are set, in the order of iproute2.
func flagNames(flags uint32) (out []string) {
	if flags&unix.IFF_UP != 0 && flags&unix.IFF_RUNNING == 0 {
		out = append(out, "NO-CARRIER")
	}
	for _, f := range []struct {
		bit  uint32
		name string
	}{
		{unix.IFF_LOOPBACK, "LOOPBACK"}, {unix.IFF_BROADCAST, "BROADCAST"}, {unix.IFF_POINTOPOINT, "POINTOPOINT"},
		{unix.IFF_MULTICAST, "MULTICAST"}, {unix.IFF_NOARP, "NOARP"}, {unix.IFF_ALLMULTI, "ALLMULTI"},
		{unix.IFF_PROMISC, "PROMISC"}, {unix.IFF_MASTER, "MASTER"}, {unix.IFF_SLAVE, "SLAVE"},
		{unix.IFF_DYNAMIC, "DYNAMIC"}, {unix.IFF_UP, "UP"}, {unix.IFF_LOWER_UP, "LOWER_UP"},
		{unix.IFF_DORMANT, "DORMANT"},
	} {
		if flags&f.bit != 0 {
			out = append(out, f.name)
		}
	}
	return out
}

// stateName is a state of RFC 2863, by the kernel's number.
func stateName(n byte) string {
	names := []string{"UNKNOWN", "NOTPRESENT", "DOWN", "LOWERLAYERDOWN", "TESTING", "DORMANT", "UP"}
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprint(n)
}

// links asks the kernel for its interfaces, by index.
func links() (map[int]link, error) {
	list, err := table(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	out := map[int]link{}
	for i := range list {
		m := &list[i]
		if m.Header.Type != unix.RTM_NEWLINK || len(m.Data) < unix.SizeofIfInfomsg {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(m)
		if err != nil {
			return nil, fmt.Errorf("the kernel's list of interfaces: %w", err)
		}
		l := linkOf(attrs)
		l.flags = binary.NativeEndian.Uint32(m.Data[8:])
		out[int(binary.NativeEndian.Uint32(m.Data[4:]))] = l
	}
	return out, nil
}

func linkOf(attrs []syscall.NetlinkRouteAttr) (l link) {
	for _, a := range attrs {
		number := uint32(0)
		if len(a.Value) >= 4 {
			number = binary.NativeEndian.Uint32(a.Value)
		}
		switch a.Attr.Type {
		case unix.IFLA_LINK:
			l.peer = number
		case unix.IFLA_LINK_NETNSID:
			l.apart = true
		case unix.IFLA_TXQLEN:
			l.queue = number
		case unix.IFLA_QDISC:
			l.qdisc = strings.TrimRight(string(a.Value), "\x00")
		case unix.IFLA_BROADCAST:
			l.brd = a.Value
		case unix.IFLA_OPERSTATE:
			if len(a.Value) > 0 {
				l.state = a.Value[0]
			}
		}
	}
	return l
}

func interfaces(c *applet.Call, how showing) error {
	list, err := net.Interfaces()
	if err != nil {
		return err
	}
	facts, err := links()
	if err != nil {
		return err
	}
	found := false
	for _, i := range list {
		if how.dev != "" && i.Name != how.dev {
			continue
		}
		found = true
		addrs, err := how.addressesOf(i)
		if err != nil {
			return err
		}
		if how.addresses && how.family != 0 && len(addrs) == 0 {
			continue
		}
		how.show(c, i, facts[i.Index], addrs)
	}
	if !found && how.dev != "" {
		return fmt.Errorf("there is no interface %q", how.dev)
	}
	return nil
}

// addressesOf are the addresses that are to be shown.
func (how *showing) addressesOf(i net.Interface) (out []*net.IPNet, err error) {
	if !how.addresses {
		return nil, nil
	}
	list, err := i.Addrs()
	for _, a := range list {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		family := unix.AF_INET
		if n.IP.To4() == nil {
			family = unix.AF_INET6
		}
		if how.family == 0 || how.family == family {
			out = append(out, n)
		}
	}
	return out, err
}

func (how *showing) show(c *applet.Call, i net.Interface, l link, addrs []*net.IPNet) {
	if how.brief {
		c.Printf("%-16s %-8s ", i.Name, stateName(l.state))
		if !how.addresses {
			c.Printf("%s ", i.HardwareAddr)
		}
		for _, n := range addrs {
			ones, _ := n.Mask.Size()
			c.Printf("%s/%d ", n.IP, ones)
		}
		c.Println()
		return
	}
	end := "\n"
	if how.oneLine {
		end = "\\"
	}
	if !how.oneLine || !how.addresses {
		c.Printf("%s%s", head(i, l), end)
		if !how.addresses || how.family == 0 {
			c.Println(hardware(i, l))
		}
	}
	for _, n := range addrs {
		if how.oneLine {
			c.Printf("%d: %s", i.Index, i.Name)
		}
		c.Println(addressLine(i, n))
	}
}

// head is the first line about an interface.
func head(i net.Interface, l link) string {
	peer := ""
	if l.peer != 0 && int(l.peer) != i.Index {
		peer = fmt.Sprintf("@if%d", l.peer)
		if on, err := net.InterfaceByIndex(int(l.peer)); err == nil && !l.apart {
			peer = "@" + on.Name
		}
	}
	flags := strings.Join(flagNames(l.flags), ",")
	text := fmt.Sprintf("%d: %s%s: <%s> mtu %d", i.Index, i.Name, peer, flags, i.MTU)
	if l.qdisc != "" {
		text += " qdisc " + l.qdisc
	}
	text += " state " + stateName(l.state)
	if l.queue != 0 {
		text += fmt.Sprintf(" qlen %d", l.queue)
	}
	return text
}

// hardware is the second one.
func hardware(i net.Interface, l link) string {
	kind, mac := "ether", i.HardwareAddr.String()
	switch {
	case i.Flags&net.FlagLoopback != 0:
		if kind = "loopback"; mac == "" {
			mac = "00:00:00:00:00:00"
		}
	case len(i.HardwareAddr) == 0:
		return "    link/none "
	}
	text := "    link/" + kind + " " + mac
	if len(l.brd) > 0 {
		text += " brd " + l.brd.String()
	}
	return text
}

func addressLine(i net.Interface, n *net.IPNet) string {
	scope := "global"
	switch {
	case n.IP.IsLoopback():
		scope = "host"
	case n.IP.IsLinkLocalUnicast():
		scope = "link"
	}
	ones, _ := n.Mask.Size()
	word, name := "inet", i.Name // which is the address's label, and those of IPv6 have none
	if n.IP.To4() == nil {
		word, name = "inet6", ""
	}
	return fmt.Sprintf("    %s %s/%d scope %s %s", word, n.IP, ones, scope, name)
}
