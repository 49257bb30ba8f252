// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// socket is one that takes what comes to a port of this machine.
type socket struct {
	proto byte
	at    netip.AddrPort
	inode string
}

// covers says whether forwarding p would take from s what it is there for. A socket on [::] takes IPv4 too, as nearly
// all of them do.
func (s socket) covers(p hostPort) bool {
	if s.proto != p.proto || s.at.Port() != p.port {
		return false
	}
	ip, four := s.at.Addr().Unmap(), p.to.Addr().Is4()
	if s.at.Addr() == netip.IPv6Unspecified() {
		return true
	}
	return ip.Is4() == four && (ip.IsUnspecified() || !p.hostIP.IsValid() || ip == p.hostIP)
}

// parseSockets reads /proc/net/tcp, udp and their like for IPv6. Of TCP those that listen count, of UDP those that hear
// everybody. Lines that are not understood are passed over.
func parseSockets(text string, proto byte) []socket {
	waits := map[byte]string{unix.IPPROTO_TCP: "0A", unix.IPPROTO_UDP: "07"}[proto]
	var out []socket
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
		if len(f) < 10 || f[3] != waits {
			continue
		}
		at, ok := parseEnd(f[1])
		from, there := parseEnd(f[2])
		if ok && there && from.Port() == 0 {
			out = append(out, socket{proto, at, f[9]})
		}
	}
	return out
}

// parseEnd reads 0100007F:1F90: the address as words in the machine's byte order.
func parseEnd(text string) (netip.AddrPort, bool) {
	addr, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(addr)
	n, perr := strconv.ParseUint(port, 16, 16)
	if err != nil || perr != nil || len(raw) != 4 && len(raw) != 16 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		word := binary.BigEndian.Uint32(raw[i:])
		if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 { // little-endian
			word = bits.ReverseBytes32(word)
		}
		binary.BigEndian.PutUint32(raw[i:], word)
	}
	ip, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip, uint16(n)), true
}

// parseSCTP reads /proc/net/sctp/eps, which has a port and the addresses of each endpoint; a listening one's state is
// 10.
func parseSCTP(text string) []socket {
	var out []socket
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // ENDPT SOCK STY SST HBKT LPORT UID INODE LADDRS...
		if len(f) < 9 || f[3] != "10" {
			continue
		}
		port, err := strconv.ParseUint(f[5], 10, 16)
		if err != nil {
			continue
		}
		for _, a := range f[8:] {
			if ip, err := netip.ParseAddr(strings.TrimPrefix(a, "*")); err == nil {
				out = append(out, socket{unix.IPPROTO_SCTP, netip.AddrPortFrom(ip, uint16(port)), f[7]})
			}
		}
	}
	return out
}

// Taken says who takes what comes to a port of one of this machine's addresses: a program, or a pod with a host port;
// empty: nobody does. The protocol is tcp, udp or sctp, in capitals or not.
func Taken(at netip.AddrPort, protocol string) string {
	ports, err := resolve([]PortMapping{{HostPort: int32(at.Port()), ContainerPort: int32(at.Port()),
		Protocol: protocol, HostIP: at.Addr().String()}}, []netip.Addr{at.Addr()})
	if err != nil || len(ports) == 0 {
		return ""
	}
	for _, s := range listening() {
		if s.covers(ports[0]) {
			return fmt.Sprintf("%s listens on %s", holder("/proc", s.inode), s.at)
		}
	}
	if to, err := Forwarded(at.Addr(), at.Port()); err == nil && to.IsValid() && ports[0].proto == unix.IPPROTO_TCP {
		return fmt.Sprintf("a pod has it as its host port, %s", to)
	}
	return ""
}

// inUse says, as ErrPortConflict, that something on this machine listens on one of the ports already. Forwarding begins
// before the machine's own sockets are asked, so whoever listens would get nothing any more: sshd, say, or the API
// server.
func inUse(ports []hostPort) error {
	var sockets []socket
	for _, p := range ports {
		if sockets == nil {
			sockets = listening()
		}
		for _, s := range sockets {
			if s.covers(p) {
				return fmt.Errorf("%w: %s is in use on this machine: %s listens on %s; stop it, or choose another hostPort",
					ErrPortConflict, p, holder("/proc", s.inode), s.at)
			}
		}
	}
	return nil
}

// listening are the sockets of this thread's network namespace. A table that cannot be read has none: the kernel may
// lack the protocol.
func listening() []socket {
	out := []socket{}
	for name, proto := range map[string]byte{"tcp": unix.IPPROTO_TCP, "tcp6": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP,
		"udp6": unix.IPPROTO_UDP} {
		if text, err := os.ReadFile("/proc/thread-self/net/" + name); err == nil {
			out = append(out, parseSockets(string(text), proto)...)
		}
	}
	if text, err := os.ReadFile("/proc/thread-self/net/sctp/eps"); err == nil {
		out = append(out, parseSCTP(string(text))...)
	}
	return out
}

// holder names the process that has a socket open, as "nginx (pid 7)".
func holder(proc, inode string) string {
	links, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "fd", "*")) // fails only for a bad pattern
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != "socket:["+inode+"]" {
			continue
		}
		dir := filepath.Dir(filepath.Dir(link))
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil {
			continue // it has just ended
		}
		return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), filepath.Base(dir))
	}
	return "a program that cannot be seen from here"
}
