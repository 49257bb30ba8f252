// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// dial connects to another place than the address says: a unix socket, or an address given for a name.
func (f *fetch) dial(d *net.Dialer) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if f.unix != "" {
			return d.DialContext(ctx, "unix", f.unix)
		}
		for _, r := range f.resolve {
			if p := strings.SplitN(r, ":", 3); len(p) == 3 && p[0]+":"+p[1] == addr {
				addr = net.JoinHostPort(strings.Trim(p[2], "[]"), p[1])
			}
		}
		return d.DialContext(ctx, network+f.family, addr)
	}
}

func nc(c *applet.Call) error {
	listen := c.Bool("l,listen", "wait for a connection")
	udp, socket := c.Bool("u,udp", "UDP"), c.Bool("U,unixsock", "HOST is the path of a unix socket")
	scan := c.Bool("z,zero", "only see whether the port is open; PORT may be FROM-TO")
	verbose := c.Bool("v,verbose", "say what goes on")
	wait := c.Float("w,wait", "SECONDS", 0, "how long to wait for a connection and for data")
	port := c.String("p", "PORT", "", "with -l: as the argument")
	keep := c.Bool("k", "with -l: take one connection after the other")
	quit := c.Float("q", "SECONDS", -1, "end that long after the end of input")
	c.Bool("n", "does nothing")
	c.Bool("N", "does nothing: the end of input is always passed on")
	if err := c.Parse(0, 2); err != nil {
		return err
	}
	network := "tcp"
	switch {
	case *socket:
		network = "unix"
	case *udp:
		network = "udp"
	}
	host, target := "", *port
	switch {
	case *socket && len(c.Args) == 1:
		host = c.Args[0]
	case len(c.Args) == 2:
		host, target = c.Args[0], c.Args[1]
	case len(c.Args) == 1 && *listen:
		target = c.Args[0]
	}
	if target == "" && !*socket || *socket && host == "" {
		return applet.Usage("missing host and port")
	}
	addr := net.JoinHostPort(host, target)
	if *socket {
		addr = host
	}
	n := &netcat{Call: c, wait: seconds(*wait), quit: seconds(*quit), verbose: *verbose || *scan && c.Name == "nc"}
	switch {
	case *listen:
		return n.serve(network, addr, *keep)
	case *scan:
		return n.scan(network, host, target)
	}
	conn, err := net.DialTimeout(network, addr, n.wait)
	if err != nil {
		return err
	}
	n.note("connected to %s", conn.RemoteAddr())
	return n.talk(conn)
}

// netcat is one run of nc.
type netcat struct {
	*applet.Call
	wait, quit time.Duration
	verbose    bool
}

func (n *netcat) note(format string, args ...any) {
	if n.verbose {
		fmt.Fprintf(n.Err, format+"\n", args...)
	}
}

// lastWords is how long input may take to end after the other side has said all it had to say.
const lastWords = time.Second

// talk copies both ways until the other side ends.
func (n *netcat) talk(conn net.Conn) error {
	defer conn.Close()
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, struct{ io.Reader }{n.In})
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		sent <- err
	}()
	got := make(chan error, 1)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			if n.wait > 0 {
				_ = conn.SetReadDeadline(time.Now().Add(n.wait))
			}
			k, err := conn.Read(buf)
			if k > 0 {
				if _, e := os.Stdout.Write(buf[:k]); e != nil {
					err = e
				}
			}
			if err != nil {
				if err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) {
					err = nil
				}
				got <- err
				return
			}
		}
	}()
	select {
	case err := <-got:
		if err == nil { // the other side may have closed its half only: what is ready to be sent still goes
			select {
			case <-sent:
			case <-time.After(lastWords):
			}
		}
		return err
	case err := <-sent:
		if err != nil && !errors.Is(err, unix.EPIPE) {
			return err
		}
	}
	if n.quit < 0 {
		return <-got
	}
	select {
	case err := <-got:
		return err
	case <-time.After(n.quit):
		return nil
	}
}

func (n *netcat) serve(network, addr string, keep bool) error {
	if network == "udp" {
		return n.serveUDP(addr)
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		return err
	}
	defer l.Close()
	n.note("listening on %s", l.Addr())
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		n.note("connection from %s", conn.RemoteAddr())
		if err := n.talk(conn); err != nil || !keep {
			return err
		}
	}
}

// serveUDP talks to who sends first.
func (n *netcat) serveUDP(addr string) error {
	at, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return err
	}
	conn, err := net.ListenUDP("udp", at)
	if err != nil {
		return err
	}
	n.note("listening on %s", conn.LocalAddr())
	buf := make([]byte, 65536)
	k, peer, err := conn.ReadFromUDPAddrPort(buf)
	if err != nil {
		return err
	}
	n.note("packet from %s", peer)
	if _, err := os.Stdout.Write(buf[:k]); err != nil {
		return err
	}
	local := conn.LocalAddr().(*net.UDPAddr) //nolint:forcetypeassert // a UDP connection's
	conn.Close()
	back, err := net.DialUDP("udp", local, net.UDPAddrFromAddrPort(peer))
	if err != nil {
		return err
	}
	return n.talk(back)
}

func (n *netcat) scan(network, host, ports string) error {
	from, to, isRange := strings.Cut(ports, "-")
	first, err := strconv.Atoi(from)
	last := first
	if err == nil && isRange {
		last, err = strconv.Atoi(to)
	}
	if err != nil || first < 1 || last > 65535 || last < first {
		return applet.Usage("port %q is not a number, nor FROM-TO", ports)
	}
	wait := n.wait
	if wait == 0 {
		wait = 10 * time.Second
	}
	open := false
	for p := first; p <= last; p++ {
		conn, err := net.DialTimeout(network, net.JoinHostPort(host, strconv.Itoa(p)), wait)
		if err != nil {
			if !isRange {
				n.note("%v", err)
			}
			continue
		}
		open = true
		n.note("%s %d open", host, p)
		conn.Close()
	}
	if !open {
		return applet.Exit(1)
	}
	return nil
}
