// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// pinger is one run of ping.
type pinger struct {
	*applet.Call
	conn net.PacketConn
	to   net.Addr
	six  bool
	raw  bool // the socket gets every echo of the machine, with IPv4's header
	id   uint16

	sent, got        int
	best, worst, sum time.Duration
}

func ping(c *applet.Call) error {
	count := c.Int("c", "N", 0, "end after N answers")
	every := c.Float("i", "SECONDS", 1, "time between questions")
	size := c.Int("s", "BYTES", 56, "size of a question")
	wait := c.Float("W", "SECONDS", 5, "how long to wait for the last answer")
	limit := c.Float("w", "SECONDS", 0, "end after that time")
	quiet := c.Bool("q", "the summary only")
	family := "ip"
	c.Do("4", "IPv4 only", func() { family = "ip4" })
	c.Do("6", "IPv6 only", func() { family = "ip6" })
	c.Bool("n", "does nothing: numbers are never names")
	if err := c.Parse(1, 1); err != nil {
		return err
	}
	if *size < 0 || *size > 65000 || *every < 0.01 {
		return applet.Usage("-s is 0 to 65000, -i at least 0.01")
	}
	if c.Args[0] == "" {
		return applet.Usage("missing host")
	}
	addr, err := net.ResolveIPAddr(family, c.Args[0])
	if err != nil {
		return applet.Fail(2, "%w", err)
	}
	p := &pinger{Call: c, six: addr.IP.To4() == nil, best: math.MaxInt64, id: uint16(os.Getpid())}
	if err := p.open(addr); err != nil {
		return applet.Fail(2, "%w", err)
	}
	defer p.conn.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*limit*float64(time.Second)))
		defer cancel()
	}
	c.Printf("PING %s (%s): %d data bytes\n", c.Args[0], addr, *size)
	_ = c.Out.Flush()
	p.run(ctx, *count, *size, seconds(*every), seconds(*wait), *quiet)
	lost := 0
	if p.sent > 0 {
		lost = 100 * (p.sent - p.got) / p.sent
	}
	c.Printf("\n--- %s ping statistics ---\n%d packets transmitted, %d received, %d%% packet loss\n", c.Args[0], p.sent,
		p.got, lost)
	if p.got == 0 {
		return applet.Exit(1)
	}
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	c.Printf("rtt min/avg/max = %.3f/%.3f/%.3f ms\n", ms(p.best), ms(p.sum)/float64(p.got), ms(p.worst))
	return nil
}

// open takes an unprivileged ICMP socket, or a raw one where those are forbidden.
func (p *pinger) open(addr *net.IPAddr) error {
	domain, protocol, network, any := unix.AF_INET, unix.IPPROTO_ICMP, "ip4:icmp", "0.0.0.0"
	if p.six {
		domain, protocol, network, any = unix.AF_INET6, unix.IPPROTO_ICMPV6, "ip6:ipv6-icmp", "::"
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err == nil {
		f := os.NewFile(uintptr(fd), "icmp")
		defer f.Close()
		if p.conn, err = net.FilePacketConn(f); err != nil {
			return err
		}
		p.to = &net.UDPAddr{IP: addr.IP, Zone: addr.Zone}
		return nil
	}
	p.to, p.raw = addr, true
	if p.conn, err = net.ListenPacket(network, any); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("neither unprivileged ICMP sockets (net.ipv4.ping_group_range does not have group %d) nor raw ones (CAP_NET_RAW) are allowed", os.Getegid())
	}
	return err
}

// answer is an echo that came back.
type answer struct {
	seq  uint16
	size int
	from net.Addr
	at   time.Time
}

func (p *pinger) run(ctx context.Context, count, size int, every, wait time.Duration, quiet bool) {
	answers := make(chan answer, 16)
	go p.listen(answers)
	out := map[uint16]time.Time{}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var late <-chan time.Time
	send := func() {
		if count > 0 && p.sent == count {
			if late == nil {
				late = time.After(wait)
			}
			return
		}
		seq := uint16(p.sent)
		p.sent++
		out[seq] = time.Now()
		if _, err := p.conn.WriteTo(p.question(seq, size), p.to); err != nil {
			p.Warn(err)
		}
	}
	for send(); ; {
		select {
		case <-ctx.Done():
			return
		case <-late:
			return
		case <-tick.C:
			send()
		case a := <-answers:
			start, ok := out[a.seq]
			if !ok {
				continue
			}
			delete(out, a.seq)
			took := a.at.Sub(start)
			p.got++
			p.sum += took
			p.best, p.worst = min(p.best, took), max(p.worst, took)
			if !quiet {
				host, _, err := net.SplitHostPort(a.from.String())
				if err != nil {
					host = a.from.String()
				}
				p.Printf("%d bytes from %s: seq=%d time=%.3f ms\n", a.size, host, a.seq, float64(took)/1e6)
				_ = p.Out.Flush()
			}
			if p.got == count {
				return
			}
		}
	}
}

// question makes an echo request.
func (p *pinger) question(seq uint16, size int) []byte {
	b := make([]byte, 8+size)
	if b[0] = 8; p.six {
		b[0] = 128
	}
	binary.BigEndian.PutUint16(b[4:], p.id)
	binary.BigEndian.PutUint16(b[6:], seq)
	for i := range size {
		b[8+i] = byte(i)
	}
	if !p.six { // for IPv6 the kernel does it
		sum := uint32(0)
		for i := 0; i < len(b); i += 2 {
			sum += uint32(b[i]) << 8
			if i+1 < len(b) {
				sum += uint32(b[i+1])
			}
		}
		for sum > 0xffff {
			sum = sum>>16 + sum&0xffff
		}
		binary.BigEndian.PutUint16(b[2:], ^uint16(sum))
	}
	return b
}

func (p *pinger) listen(answers chan<- answer) {
	buf := make([]byte, 66000)
	for {
		n, from, err := p.conn.ReadFrom(buf) // net takes IPv4's header off
		if err != nil {
			return
		}
		reply := byte(0)
		if p.six {
			reply = 129
		}
		if n < 8 || buf[0] != reply || p.raw && binary.BigEndian.Uint16(buf[4:]) != p.id {
			continue
		}
		answers <- answer{binary.BigEndian.Uint16(buf[6:]), n, from, time.Now()}
	}
}
