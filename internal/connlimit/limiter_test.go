// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/connlimit/shed"
)

// port is a server of a Limiter: who sends a user's name is known; /wait answers when it is told to.
type port struct {
	*httptest.Server
	limiter *Limiter
	waiting chan struct{}
	release chan struct{}
}

func newPort(t *testing.T, c Config) *port {
	p := &port{limiter: New(c), waiting: make(chan struct{}, 10), release: make(chan struct{})}
	p.Server = httptest.NewUnstartedServer(p.limiter.Handler(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		p.limiter.Authenticated(r, r.Header.Get("User"))
		if r.URL.Path == "/wait" {
			p.waiting <- struct{}{}
			<-p.release
		}
		fmt.Fprint(w, "hello")
	})))
	p.Listener = p.limiter.Listener(p.Listener)
	p.Start()
	t.Cleanup(p.Close)
	return p
}

type client struct {
	net.Conn
	in *bufio.Reader
}

func (p *port) dial(t *testing.T) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{c, bufio.NewReader(c)}
}

func (c *client) send(path, user string) error {
	_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nUser: %s\r\n\r\n", path, user)
	return err
}

func (c *client) receive() error {
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func (c *client) ask(t *testing.T, path, user string) {
	t.Helper()
	if err := c.send(path, user); err != nil {
		t.Fatal(err)
	}
	if err := c.receive(); err != nil {
		t.Fatal(err)
	}
}

// gone waits until the server has closed the connection.
func (c *client) gone(t *testing.T) {
	t.Helper()
	if b, err := c.in.ReadByte(); err == nil {
		t.Fatalf("read %q, want the end", b)
	}
}

// TestQuietStrangersGo (RS-01): connections without credentials are kept few; known users' connections live on, idle or
// not, and whoever comes gets in. ATTACK B12.
func TestQuietStrangersGo(t *testing.T) {
	p := newPort(t, Config{Limits: shed.Limits{Strangers: 4, PerAddress: 4, Known: 4}})
	idle, busy := p.dial(t), p.dial(t)
	idle.ask(t, "/", "ann")
	if err := busy.send("/wait", "ann"); err != nil {
		t.Fatal(err)
	}
	<-p.waiting
	var crowd []*client
	for range 40 {
		crowd = append(crowd, p.dial(t))
	}
	late := p.dial(t)
	late.ask(t, "/", "bob")
	for _, c := range crowd[:36] {
		c.gone(t)
	}
	idle.ask(t, "/", "ann")
	close(p.release)
	if err := busy.receive(); err != nil {
		t.Errorf("the request that was in progress: %v", err)
	}
}

// TestOneUserIsNotAll (RS-01): a user who opens connections without end loses their own idle ones, not others'.
func TestOneUserIsNotAll(t *testing.T) {
	p := newPort(t, Config{Limits: shed.Limits{Strangers: 4, PerAddress: 4, Known: 4}})
	ann := p.dial(t)
	ann.ask(t, "/", "ann")
	var eves []*client
	for range 10 {
		eves = append(eves, p.dial(t))
		eves[len(eves)-1].ask(t, "/", "eve")
	}
	for _, c := range eves[:7] {
		c.gone(t)
	}
	ann.ask(t, "/", "ann")
}

// TestStrangersHaveLittleTime (RS-01): one who shows no credentials is cut off; one who has may be idle longer, and a
// request takes its time.
func TestStrangersHaveLittleTime(t *testing.T) {
	p := newPort(t, Config{Limits: shed.LimitsFor(1000, 100), StrangerTime: 2 * time.Second})
	known, asking := p.dial(t), p.dial(t)
	known.ask(t, "/", "ann")
	if err := asking.send("/wait", ""); err != nil {
		t.Fatal(err)
	}
	<-p.waiting
	p.dial(t).gone(t)
	half := p.dial(t)
	if _, err := half.Write([]byte("GET / HTTP/1.1\r\n")); err != nil {
		t.Fatal(err)
	}
	half.gone(t)
	close(p.release)
	if err := asking.receive(); err != nil {
		t.Errorf("a request in progress was cut: %v", err)
	}
	asking.gone(t) // and its time begins
	known.ask(t, "/", "ann")
}

// failing says at first that there are no descriptors.
type failing struct {
	net.Listener
	left int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left--; f.left >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

// TestNoDescriptors (RS-01): for want of descriptors quiet connections are closed, and the next is accepted at once.
// ATTACK B12.
func TestNoDescriptors(t *testing.T) {
	short := false
	d := New(Config{Limits: shed.LimitsFor(1000, 100), Short: func() bool { return short }})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out := &failing{Listener: inner}
	l := d.Listener(out)
	defer l.Close()
	dial := func() *client {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
		return &client{c, bufio.NewReader(c)}
	}
	first, second := dial(), dial()
	out.left = 1
	third := dial()
	first.gone(t)
	short = true
	dial()
	second.gone(t)
	short, out.left = false, 3 // more than there are connections
	c, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := l.Accept(); err == nil {
		t.Error("accepted without a descriptor")
	}
	third.gone(t)
}

// TestDescriptors (RS-01): they run short before they are used up.
func TestDescriptors(t *testing.T) {
	d, err := NewDescriptors()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Short() {
		t.Errorf("short at the start, with a limit of %d", d.Limit())
	}
	d.limit = d.reserve // as if so many were open
	if !d.Short() {
		t.Error("not short when only the reserve is left")
	}
}

// TestVanishedClientsAreNoticed (RS-01): the kernel asks after quiet clients, so that the sessions of those that have
// vanished end.
func TestVanishedClientsAreNoticed(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := New(Config{Limits: shed.LimitsFor(1000, 100)}).Listener(inner)
	defer l.Close()
	out, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := in.(*conn).Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]int{unix.TCP_KEEPIDLE: 0, unix.TCP_KEEPINTVL: 0, unix.TCP_KEEPCNT: 0}
	on := 0
	var errs []error
	err = raw.Control(func(fd uintptr) {
		for name := range got {
			value, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name)
			got[name], errs = value, append(errs, err)
		}
		value, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
		on, errs = value, append(errs, err)
	})
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	if seconds := got[unix.TCP_KEEPIDLE] + got[unix.TCP_KEEPINTVL]*got[unix.TCP_KEEPCNT]; on != 1 || seconds <= 0 ||
		seconds > 180 {
		t.Errorf("keepalive %d, a vanished client is noticed after %d s", on, seconds)
	}
}
