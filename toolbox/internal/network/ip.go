// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func ip(c *applet.Call) error {
	c.Posix()
	family := 0
	c.Do("4", "IPv4 only", func() { family = unix.AF_INET })
	c.Do("6", "IPv6 only", func() { family = unix.AF_INET6 })
	brief := c.Bool(",brief", "a line for each")
	for i, a := range c.Args {
		if a == "-br" || a == "-brief" {
			c.Args[i] = "--brief"
		}
		if a == "-o" || a == "-c" || a == "-d" || a == "-s" || strings.HasPrefix(a, "-color") {
			c.Args[i] = "--plain"
		}
	}
	c.Do(",plain", "does nothing", func() {})
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	what, rest := c.Args[0], c.Args[1:]
	dev, get := "", ""
	for i := 0; i < len(rest); i++ {
		switch w := rest[i]; {
		case strings.HasPrefix("show", w), strings.HasPrefix("list", w), w == "table" && i+1 < len(rest) && rest[i+1] == "main":
			if w == "table" {
				i++
			}
		case w == "dev" && i+1 < len(rest):
			i++
			dev = rest[i]
		case w == "get" && i+1 < len(rest):
			i++
			get = rest[i]
		case strings.HasPrefix("address", what) || strings.HasPrefix("link", what):
			dev = w
			if w == "add" || w == "del" || w == "set" || w == "flush" {
				return applet.Usage("%q is not supported: only show is", w)
			}
		default:
			return applet.Usage("%q is not supported: only show is", w)
		}
	}
	switch {
	case strings.HasPrefix("address", what):
		return interfaces(c, dev, family, true, *brief)
	case strings.HasPrefix("link", what):
		return interfaces(c, dev, family, false, *brief)
	case strings.HasPrefix("route", what):
		if get != "" {
			return routeTo(c, get)
		}
		return showRoutes(c, dev, family)
	case strings.HasPrefix("neighbour", what), what == "neighbor":
		return neighbours(c, dev)
	}
	return applet.Usage("%q is not one of addr, link, route, neigh", what)
}

func ifconfig(c *applet.Call) error {
	c.Bool("a", "does nothing")
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	dev := ""
	if len(c.Args) == 1 {
		dev = c.Args[0]
	}
	return interfaces(c, dev, 0, true, false)
}

func routes(c *applet.Call) error {
	c.Bool("n", "does nothing: numbers are never names")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	return showRoutes(c, "", 0)
}

// state is what the kernel has of an interface.
func state(name, file string) string {
	text, _ := os.ReadFile("/sys/class/net/" + name + "/" + file)
	return strings.TrimSpace(string(text))
}

func interfaces(c *applet.Call, dev string, family int, addresses, brief bool) error {
	list, err := net.Interfaces()
	if err != nil {
		return err
	}
	found := false
	for _, i := range list {
		if dev != "" && i.Name != dev {
			continue
		}
		found = true
		status := "DOWN"
		if i.Flags&net.FlagRunning != 0 {
			status = "UP"
		}
		if i.Flags&net.FlagLoopback != 0 {
			status = "UNKNOWN"
		}
		addrs, err := i.Addrs()
		if err != nil {
			return err
		}
		if brief {
			c.Printf("%-16s %-8s ", i.Name, status)
			if !addresses {
				c.Printf("%s ", i.HardwareAddr)
			}
		} else {
			peer := ""
			if link := state(i.Name, "iflink"); link != "" && link != strconv.Itoa(i.Index) {
				peer = "@if" + link
			}
			flags := strings.ToUpper(strings.ReplaceAll(i.Flags.String(), "|", ","))
			flags = strings.NewReplacer("RUNNING", "LOWER_UP", "POINTTOPOINT", "POINTOPOINT").Replace(flags)
			c.Printf("%d: %s%s: <%s> mtu %d state %s", i.Index, i.Name, peer, flags, i.MTU, status)
			if q := state(i.Name, "tx_queue_len"); q != "" {
				c.Printf(" qlen %s", q)
			}
			kind := "ether"
			if i.Flags&net.FlagLoopback != 0 {
				kind = "loopback"
			} else if len(i.HardwareAddr) == 0 {
				kind = "none"
			}
			mac := i.HardwareAddr.String()
			if mac == "" && kind == "loopback" {
				mac = "00:00:00:00:00:00"
			}
			c.Printf("\n    link/%s %s\n", kind, mac)
		}
		for _, a := range addrs {
			n, ok := a.(*net.IPNet)
			if !ok || !addresses {
				continue
			}
			word, fam := "inet", unix.AF_INET
			if n.IP.To4() == nil {
				word, fam = "inet6", unix.AF_INET6
			}
			if family != 0 && fam != family {
				continue
			}
			ones, _ := n.Mask.Size()
			if brief {
				c.Printf("%s/%d ", n.IP, ones)
				continue
			}
			scope := "global"
			switch {
			case n.IP.IsLoopback():
				scope = "host"
			case n.IP.IsLinkLocalUnicast():
				scope = "link"
			}
			c.Printf("    %s %s/%d scope %s %s\n", word, n.IP, ones, scope, i.Name)
		}
		if brief {
			c.Println()
		}
	}
	if !found && dev != "" {
		return fmt.Errorf("there is no interface %q", dev)
	}
	return nil
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
	if word := map[byte]string{unix.RTN_BLACKHOLE: "blackhole ", unix.RTN_UNREACHABLE: "unreachable ", unix.RTN_PROHIBIT: "prohibit "}[kind]; word != "" {
		text = word + text
	}
	if dev != "" {
		text += " dev " + dev
	}
	if word := map[byte]string{2: "kernel", 3: "boot", 4: "static", 9: "ra", 16: "dhcp"}[protocol]; word != "" && word != "boot" {
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
	states := map[uint16]string{1: "INCOMPLETE", 2: "REACHABLE", 4: "STALE", 8: "DELAY", 16: "PROBE", 32: "FAILED", 128: "PERMANENT"}
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
