// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCovers (RS-10): a host port is in use if a packet to it would reach a socket of the machine.
func TestCovers(t *testing.T) {
	port := func(hostIP, pod string) hostPort {
		p := hostPort{proto: unix.IPPROTO_TCP, port: 80, to: netip.AddrPortFrom(netip.MustParseAddr(pod), 8080)}
		if hostIP != "" {
			p.hostIP = netip.MustParseAddr(hostIP)
		}
		return p
	}
	const four, six = "10.0.0.2", "fd00::2"
	for _, row := range []struct {
		socket string
		port   hostPort
		want   bool
	}{
		{"0.0.0.0:80", port("", four), true},
		{"0.0.0.0:80", port("10.1.1.1", four), true},
		{"0.0.0.0:80", port("", six), false},
		{"0.0.0.0:81", port("", four), false},
		{"127.0.0.1:80", port("", four), true},
		{"127.0.0.1:80", port("127.0.0.1", four), true},
		{"127.0.0.1:80", port("10.1.1.1", four), false},
		{"[::]:80", port("", four), true},
		{"[::]:80", port("", six), true},
		{"[::1]:80", port("", four), false},
		{"[::1]:80", port("", six), true},
		{"[::ffff:10.1.1.1]:80", port("", four), true},
	} {
		s := socket{unix.IPPROTO_TCP, netip.MustParseAddrPort(row.socket), "1"}
		if got := s.covers(row.port); got != row.want {
			t.Errorf("socket on %s, host port %s to %s: %v", row.socket, row.port, row.port.to, got)
		}
		if s.proto = unix.IPPROTO_UDP; s.covers(row.port) {
			t.Errorf("a UDP socket on %s takes %s", row.socket, row.port)
		}
	}
}

func TestParseSCTP(t *testing.T) {
	const eps = " ENDPT     SOCK   STY SST HBKT LPORT   UID INODE LADDRS\nffff8800 ffff8801 2   10  29   11165  200 299689357 10.0.0.102 10.0.0.70 \n" +
		"ffff8802 ffff8803 2   1   29   11166  200 299689358 10.0.0.102\n"
	got := parseSCTP(eps)
	if len(got) != 2 || got[1] != (socket{unix.IPPROTO_SCTP, netip.MustParseAddrPort("10.0.0.70:11165"), "299689357"}) {
		t.Errorf("%v", got)
	}
}

// TestListening (RS-10): what listens is found, with who it is; connections, and sockets that only send, are not.
func TestListening(t *testing.T) {
	four, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer four.Close()
	there, err := net.Dial("tcp", four.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	at := func(proto byte, a net.Addr) hostPort {
		ap := netip.MustParseAddrPort(a.String())
		return hostPort{proto: proto, port: ap.Port(), to: netip.MustParseAddrPort("10.0.0.2:80")}
	}
	for _, p := range []hostPort{at(unix.IPPROTO_TCP, four.Addr()), at(unix.IPPROTO_UDP, udp.LocalAddr())} {
		err := inUse([]hostPort{p})
		if !errors.Is(err, ErrPortConflict) || !strings.Contains(err.Error(), "(pid "+strconv.Itoa(os.Getpid())+") listens on 127.0.0.1:") {
			t.Errorf("%s: %v", p, err)
		}
	}
	if err := inUse([]hostPort{at(unix.IPPROTO_TCP, there.LocalAddr())}); err != nil {
		t.Errorf("the port of a client: %v", err)
	}
	six, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here: ", err)
	}
	defer six.Close()
	p := at(unix.IPPROTO_TCP, six.Addr())
	p.to = netip.MustParseAddrPort("[fd00::2]:80")
	if err := inUse([]hostPort{p}); err == nil || !strings.Contains(err.Error(), "listens on [::1]:") {
		t.Errorf("IPv6: %v", err)
	}
}
