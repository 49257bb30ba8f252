// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
	"github.com/wherryproject/wherry/toolbox/internal/procs"
)

// socket is a line of /proc/net.
type socket struct {
	kind, state, local, peer string
	from, to                 netip.AddrPort // of local and peer; zero for unix sockets
	receive, send            uint64
	uid                      int
	inode                    uint64
}

func ss(c *applet.Call) error { return sockets(c, false) }

func netstat(c *applet.Call) error { return sockets(c, true) }

// socketFlags are the flags of ss and netstat.
type socketFlags struct {
	tcp, udp, raw, unix, four, six *bool
	listening, all                 *bool
	holders, extra, bare           *bool
	summary, route                 *bool
}

func newSocketFlags(c *applet.Call, old bool) (f socketFlags) {
	f.tcp, f.udp, f.unix = c.Bool("t,tcp", "TCP"), c.Bool("u,udp", "UDP"), c.Bool("x,unix", "unix sockets")
	f.raw = c.Bool("w,raw", "raw sockets")
	f.listening = c.Bool("l,listening", "those that listen only")
	f.all = c.Bool("a,all", "those that listen too")
	f.holders = c.Bool("p,processes", "the processes that have them")
	c.Bool("n,numeric", "does nothing: numbers are never names")
	f.extra = c.Bool("e,extended", "users and inodes too")
	f.four, f.six = c.Bool("4,ipv4", "IPv4 only"), c.Bool("6,ipv6", "IPv6 only")
	f.bare = c.Bool("H,no-header", "no title")
	c.Bool("o,options", "does nothing")
	f.summary = c.Bool("s,summary", "only how many there are")
	f.route = new(bool)
	if old {
		f.route = c.Bool("r,route", "the routes")
	}
	return f
}

// sockets is ss, or the old netstat, which shows no unix sockets unless they are asked for.
func sockets(c *applet.Call, old bool) error {
	f := newSocketFlags(c, old)
	if err := c.Parse(0, map[bool]int{false: -1, true: 0}[old]); err != nil {
		return err
	}
	match, err := socketFilter(c.Args)
	if err != nil {
		return err
	}
	if match.states != nil { // as ss has it: states name what is wanted
		*f.all = true
	}
	switch {
	case *f.summary:
		return countSockets(c)
	case *f.route:
		return showRoutes(c, "", 0)
	}
	if !*f.tcp && !*f.udp && !*f.unix && !*f.raw {
		*f.tcp, *f.udp, *f.unix = true, true, !old
	}
	printTable(c, f.rows(f.read(), match))
	return nil
}

// read reads the sockets of the kinds that are asked for.
func (f socketFlags) read() (list []socket) {
	for _, k := range []struct {
		want bool
		kind string
	}{{*f.tcp, "tcp"}, {*f.udp, "udp"}, {*f.raw, "raw"}} {
		if k.want && !*f.six {
			list = append(list, inet(k.kind, k.kind)...)
		}
		if k.want && !*f.four {
			list = append(list, inet(k.kind, k.kind+"6")...)
		}
	}
	if *f.unix {
		list = append(list, unixSockets()...)
	}
	return list
}

// shows says whether a socket is shown by the state that it is in.
func (f socketFlags) shows(s socket) bool {
	if s.state == "LISTEN" || s.state == "UNCONN" {
		return *f.listening || *f.all
	}
	return !*f.listening
}

// rows are the cells of the table: its titles, and a row for each socket that is shown.
func (f socketFlags) rows(list []socket, match matcher) (rows [][]string) {
	var owners map[uint64][]procs.Holder
	if *f.holders {
		owners = procs.Sockets()
	}
	if !*f.bare {
		rows = append(rows, []string{"Netid", "State", "Recv-Q", "Send-Q", "Local Address:Port", "Peer Address:Port"})
		if *f.holders {
			rows[0] = append(rows[0], "Process")
		}
	}
	for _, s := range list {
		if !f.shows(s) || !match.has(s) {
			continue
		}
		row := []string{s.kind, s.state, fmt.Sprint(s.receive), fmt.Sprint(s.send), s.local, s.peer}
		if *f.holders {
			row = append(row, who(owners[s.inode]))
		}
		if *f.extra {
			row = append(row, fmt.Sprintf("uid:%d ino:%d", s.uid, s.inode))
		}
		rows = append(rows, row)
	}
	return rows
}

// printTable makes columns no wider than they must be, so that lines fit on a terminal. The third and fourth are
// numbers.
func printTable(c *applet.Call, rows [][]string) {
	var width [8]int
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if i == 2 || i == 3 {
				fmt.Fprintf(&b, "%*s ", width[i], cell)
			} else {
				fmt.Fprintf(&b, "%-*s ", width[i], cell)
			}
		}
		c.Println(strings.TrimRight(b.String(), " "))
	}
}

func who(list []procs.Holder) string {
	if len(list) == 0 {
		return ""
	}
	var out []string
	for _, h := range list {
		out = append(out, fmt.Sprintf("(%q,pid=%d,fd=%d)", h.Name, h.PID, h.FD))
	}
	return "users:(" + strings.Join(out, ",") + ")"
}

// inet reads /proc/net/tcp and its like; a kernel without IPv6 has no such file.
func inet(kind, file string) (out []socket) {
	text, err := os.ReadFile("/proc/net/" + file)
	if err != nil {
		return nil
	}
	states := socketStates()
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 10 || f[0] == "sl" {
			continue
		}
		s := socket{kind: kind, from: endpoint(f[1]), to: endpoint(f[2])}
		s.local, s.peer = endpointWord(s.from), endpointWord(s.to)
		if n, err := strconv.ParseUint(f[3], 16, 8); err == nil && int(n) < len(states) {
			s.state = states[n]
		}
		send, receive, _ := strings.Cut(f[4], ":")
		s.send, _ = strconv.ParseUint(send, 16, 64)
		s.receive, _ = strconv.ParseUint(receive, 16, 64)
		s.uid, _ = strconv.Atoi(f[7])
		s.inode, _ = strconv.ParseUint(f[9], 10, 64)
		out = append(out, s)
	}
	return out
}

// endpoint reads an address as the kernel prints it: words of four bytes in the machine's order.
func endpoint(text string) netip.AddrPort {
	addr, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(addr)
	if err != nil || len(b)%4 != 0 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(b); i += 4 {
		b[i], b[i+1], b[i+2], b[i+3] = b[i+3], b[i+2], b[i+1], b[i]
	}
	ip, _ := netip.AddrFromSlice(b)
	n, _ := strconv.ParseUint(port, 16, 16)
	return netip.AddrPortFrom(ip, uint16(n))
}

func endpointWord(a netip.AddrPort) string {
	word := strconv.Itoa(int(a.Port()))
	if a.Port() == 0 {
		word = "*"
	}
	if a.Addr().Is6() {
		return "[" + a.Addr().Unmap().String() + "]:" + word
	}
	return a.Addr().String() + ":" + word
}

func unixSockets() (out []socket) {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 7 || f[0] == "Num" {
			continue
		}
		s := socket{kind: map[string]string{"0001": "u_str", "0002": "u_dgr", "0005": "u_seq"}[f[4]], local: "*",
			peer: "*", state: "ESTAB"}
		flags, _ := strconv.ParseUint(f[3], 16, 64)
		switch {
		case flags&0x10000 != 0:
			s.state = "LISTEN"
		case f[5] == "01":
			s.state = "UNCONN"
		}
		s.inode, _ = strconv.ParseUint(f[6], 10, 64)
		if len(f) > 7 {
			s.local = f[7]
		}
		out = append(out, s)
	}
	return out
}
