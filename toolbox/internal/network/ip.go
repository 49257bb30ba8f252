// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// showing is what ip is to show of interfaces, and how.
type showing struct {
	dev       string
	family    int
	addresses bool
	brief     bool // -br: a line for each interface, in columns
	oneLine   bool // -o: a line for each interface or address
}

func ip(c *applet.Call) error {
	c.Posix()
	var how showing
	c.Do("4", "IPv4 only", func() { how.family = unix.AF_INET })
	c.Do("6", "IPv6 only", func() { how.family = unix.AF_INET6 })
	brief := c.Bool(",brief", "a line for each")
	oneLine := c.Bool("o,oneline", "each on one line, with \\ for the ends of lines")
	for i, a := range c.Args {
		if a == "-br" || a == "-brief" {
			c.Args[i] = "--brief"
		}
		if a == "-c" || a == "-d" || a == "-s" || strings.HasPrefix(a, "-color") {
			c.Args[i] = "--plain"
		}
	}
	c.Do(",plain", "does nothing", func() {})
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	how.brief, how.oneLine = *brief, *oneLine
	what, get := c.Args[0], ""
	if err := how.words(what, c.Args[1:], &get); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix("address", what):
		how.addresses = true
		return interfaces(c, how)
	case strings.HasPrefix("link", what):
		return interfaces(c, how)
	case strings.HasPrefix("route", what):
		if get != "" {
			return routeTo(c, get)
		}
		return showRoutes(c, how.dev, how.family)
	case strings.HasPrefix("neighbour", what), what == "neighbor":
		return neighbours(c, how.dev)
	}
	return applet.Usage("%q is not one of addr, link, route, neigh", what)
}

// words reads what stands behind the kind of object.
func (how *showing) words(what string, rest []string, get *string) error {
	for i := 0; i < len(rest); i++ {
		switch w := rest[i]; {
		case strings.HasPrefix("show", w), strings.HasPrefix("list", w):
		case w == "table" && i+1 < len(rest) && rest[i+1] == "main":
			i++
		case w == "dev" && i+1 < len(rest):
			i++
			how.dev = rest[i]
		case w == "get" && i+1 < len(rest):
			i++
			*get = rest[i]
		case w != "add" && w != "del" && w != "set" && w != "flush" &&
			(strings.HasPrefix("address", what) || strings.HasPrefix("link", what)):
			how.dev = w
		default:
			return applet.Usage("%q is not supported: only show is", w)
		}
	}
	return nil
}

func ifconfig(c *applet.Call) error {
	c.Bool("a", "does nothing")
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	how := showing{addresses: true}
	if len(c.Args) == 1 {
		how.dev = c.Args[0]
	}
	return interfaces(c, how)
}

func routes(c *applet.Call) error {
	c.Bool("n", "does nothing: numbers are never names")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	return showRoutes(c, "", 0)
}

// table asks the kernel for one of its network tables.
func table(kind, family int) ([]syscall.NetlinkMessage, error) {
	data, err := syscall.NetlinkRIB(kind, family)
	if err != nil {
		return nil, err
	}
	return syscall.ParseNetlinkMessage(data)
}

func device(index uint32) string {
	if i, err := net.InterfaceByIndex(int(index)); err == nil {
		return i.Name
	}
	return fmt.Sprintf("if%d", index)
}

func showRoutes(c *applet.Call, dev string, family int) error {
	families := []int{unix.AF_INET}
	if family != 0 {
		families = []int{family}
	}
	for _, f := range families {
		list, err := table(unix.RTM_GETROUTE, f)
		if err != nil {
			return err
		}
		for i := range list {
			if text, on, ok := routeLine(&list[i]); ok && (dev == "" || dev == on) {
				c.Println(text)
			}
		}
	}
	return nil
}

// routeLine words a route of the main table.
func routeLine(m *syscall.NetlinkMessage) (text, dev string, ok bool) {
	if m.Header.Type != unix.RTM_NEWROUTE || len(m.Data) < unix.SizeofRtMsg {
		return "", "", false
	}
	bits, protocol, scope, kind := m.Data[1], m.Data[5], m.Data[6], m.Data[7]
	number := uint32(m.Data[4])
	attrs, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return "", "", false
	}
	dst, via, src, metric := "default", "", "", ""
	for _, a := range attrs {
		switch a.Attr.Type {
		case unix.RTA_DST:
			if ip, ok := netip.AddrFromSlice(a.Value); ok {
				if dst = ip.String(); int(bits) < ip.BitLen() {
					dst = fmt.Sprintf("%s/%d", ip, bits)
				}
			}
		case unix.RTA_GATEWAY:
			via = " via " + address(a.Value)
		case unix.RTA_PREFSRC:
			src = " src " + address(a.Value)
		case unix.RTA_OIF:
			dev = device(binary.NativeEndian.Uint32(a.Value))
		case unix.RTA_PRIORITY:
			metric = fmt.Sprintf(" metric %d", binary.NativeEndian.Uint32(a.Value))
		case unix.RTA_TABLE:
			number = binary.NativeEndian.Uint32(a.Value)
		}
	}
	if number != unix.RT_TABLE_MAIN {
		return "", "", false
	}
	text = dst + via
	if word := map[byte]string{unix.RTN_BLACKHOLE: "blackhole ", unix.RTN_UNREACHABLE: "unreachable ",
		unix.RTN_PROHIBIT: "prohibit "}[kind]; word != "" {
		text = word + text
	}
	if dev != "" {
		text += " dev " + dev
	}
	if word := map[byte]string{2: "kernel", 3: "boot", 4: "static", 9: "ra", 16: "dhcp"}[protocol]; word != "" &&
		word != "boot" {
		text += " proto " + word
	}
	if scope == unix.RT_SCOPE_LINK {
		text += " scope link"
	}
	return text + src + metric, dev, true
}

func address(b []byte) string {
	ip, _ := netip.AddrFromSlice(b)
	return ip.String()
}

// routeTo tells from which address and by which interface a machine is reached: the kernel chooses when a socket is
// connected, without a packet.
func routeTo(c *applet.Call, to string) error {
	conn, err := net.Dial("udp", net.JoinHostPort(to, "9"))
	if err != nil {
		return err
	}
	defer conn.Close()
	local, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		return err
	}
	dev := ""
	list, _ := net.Interfaces()
	for _, i := range list {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.String() == local {
				dev = " dev " + i.Name
			}
		}
	}
	c.Printf("%s%s src %s\n", to, dev, local)
	return nil
}

func neighbours(c *applet.Call, dev string) error {
	list, err := table(unix.RTM_GETNEIGH, unix.AF_UNSPEC)
	if err != nil {
		return err
	}
	states := map[uint16]string{1: "INCOMPLETE", 2: "REACHABLE", 4: "STALE", 8: "DELAY", 16: "PROBE", 32: "FAILED",
		128: "PERMANENT"}
	for i := range list {
		m := &list[i]
		if m.Header.Type != unix.RTM_NEWNEIGH || len(m.Data) < 12 {
			continue
		}
		on := device(binary.NativeEndian.Uint32(m.Data[4:]))
		state := states[binary.NativeEndian.Uint16(m.Data[8:])]
		m.Data = m.Data[12:]
		var ip, mac string
		for rest := m.Data; len(rest) >= 4; {
			size, kind := int(binary.NativeEndian.Uint16(rest)), binary.NativeEndian.Uint16(rest[2:])
			if size < 4 || size > len(rest) {
				break
			}
			switch kind {
			case unix.NDA_DST:
				ip = address(rest[4:size])
			case unix.NDA_LLADDR:
				mac = " lladdr " + net.HardwareAddr(rest[4:size]).String()
			}
			rest = rest[min((size+3)&^3, len(rest)):]
		}
		if state != "" && (dev == "" || dev == on) {
			c.Printf("%s dev %s%s %s\n", ip, on, mac, state)
		}
	}
	return nil
}
