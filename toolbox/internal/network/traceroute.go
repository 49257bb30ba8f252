// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// tracer is one run of traceroute. Routers' complaints about UDP packets are read from the socket's error queue, which
// needs no right.
type tracer struct {
	*applet.Call
	fd   int
	six  bool
	to   netip.Addr
	wait time.Duration
	wake *os.File // is closed by Ctrl-C
}

// reply is what came back for a packet.
type reply struct {
	from  netip.Addr
	took  time.Duration
	mark  string // why the packet did not get there, for example !H
	final bool
}

func traceroute(c *applet.Call) error {
	most, first := c.Int("m,max-hops", "N", 30, "at most that many hops"),
		c.Int("f,first", "N", 1, "begin with this hop")
	tries, wait := c.Int("q,queries", "N", 3, "packets for each hop"),
		c.Float("w,wait", "SECONDS", 3, "how long to wait for an answer")
	port := c.Int("p,port", "PORT", 33434, "the first packet's port")
	c.Bool("n", "does nothing: numbers are never names")
	family := "ip"
	c.Do("4", "IPv4 only", func() { family = "ip4" })
	c.Do("6", "IPv6 only", func() { family = "ip6" })
	if err := c.Parse(1, 2); err != nil {
		return err
	}
	if *most < 1 || *most > 255 || *first < 1 || *tries < 1 || *tries > 10 || *port < 1 || *port+*most**tries > 65535 {
		return applet.Usage("-m is 1 to 255, -q 1 to 10, and all ports below 65536")
	}
	found, err := net.ResolveIPAddr(family, c.Args[0])
	if err != nil {
		return applet.Fail(2, "%w", err)
	}
	addr, _ := netip.AddrFromSlice(found.IP)
	t := &tracer{Call: c, to: addr.Unmap(), wait: time.Duration(*wait * float64(time.Second))}
	if err := t.open(); err != nil {
		return err
	}
	defer unix.Close(t.fd)
	wake, ended, err := os.Pipe()
	if err != nil {
		return err
	}
	t.wake = wake
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	go func() {
		<-stop
		ended.Close()
	}()
	c.Printf("traceroute to %s (%s), %d hops max\n", c.Args[0], t.to, *most)
	for hop := *first; hop <= *most; hop++ {
		done, err := t.hop(hop, *tries, *port+(hop-*first)**tries)
		if done || err != nil {
			return err
		}
	}
	return applet.Exit(1)
}

func (t *tracer) open() (err error) {
	t.six = !t.to.Is4()
	domain, level, option := unix.AF_INET, unix.IPPROTO_IP, unix.IP_RECVERR
	if t.six {
		domain, level, option = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_RECVERR
	}
	if t.fd, err = unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return err
	}
	return unix.SetsockoptInt(t.fd, level, option, 1)
}

// hop asks for one router, some times.
func (t *tracer) hop(hop, tries, port int) (done bool, err error) {
	t.Printf("%2d ", hop)
	var last netip.Addr
	for i := range tries {
		_ = t.Out.Flush() // each answer is shown as it comes
		r, err := t.ask(hop, port+i)
		if err != nil {
			return true, err
		}
		if !r.from.IsValid() {
			t.Printf(" *")
			continue
		}
		if r.from != last {
			t.Printf(" %s", r.from)
			last = r.from
		}
		t.Printf("  %.3f ms", float64(r.took)/1e6)
		if r.mark != "" {
			t.Printf(" %s", r.mark)
		}
		done = done || r.final
	}
	t.Println()
	return done, t.Out.Flush()
}

// ask sends a packet that lives for so many hops, and waits for what is said about it.
func (t *tracer) ask(hop, port int) (reply, error) {
	level, option := unix.IPPROTO_IP, unix.IP_TTL
	var to unix.Sockaddr = &unix.SockaddrInet4{Port: port, Addr: [4]byte(t.to.AsSlice()[:4])}
	if t.six {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS
		to = &unix.SockaddrInet6{Port: port, Addr: t.to.As16()}
	}
	if err := unix.SetsockoptInt(t.fd, level, option, hop); err != nil {
		return reply{}, err
	}
	start := time.Now()
	err := unix.Sendto(t.fd, make([]byte, 32), 0, to)
	// that of an earlier packet, it may be
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH) {
		err = unix.Sendto(t.fd, make([]byte, 32), 0, to)
	}
	if err != nil {
		return reply{}, fmt.Errorf("send to %s: %w", t.to, err)
	}
	for {
		left := t.wait - time.Since(start)
		if left <= 0 {
			return reply{}, nil
		}
		fds := []unix.PollFd{{Fd: int32(t.fd)}, {Fd: int32(t.wake.Fd()), Events: unix.POLLIN}} // errors come unasked
		if _, err := unix.Poll(fds, int(left/time.Millisecond)+1); err != nil && !errors.Is(err, unix.EINTR) {
			return reply{}, err
		}
		if fds[1].Revents != 0 {
			t.Println()
			return reply{}, applet.Exit(130)
		}
		buf, aux := make([]byte, 512), make([]byte, 512)
		_, n, _, about, err := unix.Recvmsg(t.fd, buf, aux, unix.MSG_ERRQUEUE)
		if err != nil || !isPort(about, port) { // one that came too late is not this one's
			continue
		}
		if r, ok := t.read(aux[:n]); ok {
			r.took = time.Since(start)
			return r, nil
		}
	}
}

func isPort(about unix.Sockaddr, port int) bool {
	switch a := about.(type) {
	case *unix.SockaddrInet4:
		return a.Port == port
	case *unix.SockaddrInet6:
		return a.Port == port
	}
	return false
}

// read finds who complained, and about what: a sock_extended_err and the address behind it.
func (t *tracer) read(aux []byte) (r reply, ok bool) {
	list, err := unix.ParseSocketControlMessage(aux)
	if err != nil {
		return r, false
	}
	for _, m := range list {
		d := m.Data
		if m.Header.Type != unix.IP_RECVERR && m.Header.Type != unix.IPV6_RECVERR || len(d) < 16+8 {
			continue
		}
		switch errno, origin, kind, code := unix.Errno(binary.NativeEndian.Uint32(d)), d[4], d[5], d[6]; {
		case origin == unix.SO_EE_ORIGIN_ICMP:
			r.from, _ = netip.AddrFromSlice(d[20:24])
			if kind == 3 {
				r.final, r.mark = true, map[byte]string{0: "!N", 1: "!H", 2: "!P", 4: "!F", 13: "!X"}[code]
			}
		case origin == unix.SO_EE_ORIGIN_ICMP6 && len(d) >= 40:
			r.from, _ = netip.AddrFromSlice(d[24:40])
			if kind == 1 {
				r.final, r.mark = true, map[byte]string{0: "!N", 1: "!X", 3: "!H"}[code]
			}
		default:
			r.from, r.final, r.mark = t.to, true, "!("+errno.Error()+")"
		}
		return r, true
	}
	return r, false
}
