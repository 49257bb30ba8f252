// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// RS-01: a pod that holds as many TCP connections as there may be gives some of them to others, the oldest first, until they have as many;
// its own further ones are refused.
func TestStreamsAreShared(t *testing.T) {
	w := newWorld(t, local(), "", 53)
	open := func(from string) net.Conn {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.DialContext(t.Context(), "tcp", w.listen.address.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	closed := func(c net.Conn) bool {
		_ = c.SetReadDeadline(time.Now().Add(idle - time.Second)) // before it would be closed for saying nothing
		_, err := c.Read(make([]byte, 1))
		return errors.Is(err, io.EOF)
	}
	answered := func(c net.Conn) bool {
		q := dnsmessage.Message{Header: dnsmessage.Header{ID: 1}, Questions: []dnsmessage.Question{
			{Name: dnsmessage.MustNewName("nope.cluster.local."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
		packet, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if writeMessage(c, packet) != nil {
			return false
		}
		_, err = readMessage(c)
		return err == nil
	}
	w.listen.streams.mu.Lock()
	w.listen.streams.most = 4
	w.listen.streams.mu.Unlock()
	var greedy []net.Conn
	for range 4 {
		c := open("127.0.0.2")
		greedy = append(greedy, c)
		if !answered(c) {
			t.Fatal("one of four is not answered")
		}
	}
	if c := open("127.0.0.2"); !closed(c) {
		t.Error("a fifth connection of the same client is open")
	}
	modest := []net.Conn{open("127.0.0.3"), open("127.0.0.3")}
	for i, c := range modest {
		if !answered(c) || !closed(greedy[i]) {
			t.Errorf("connection %d of another client has not got the place of the greedy one's oldest", i+1)
		}
	}
	if c := open("127.0.0.3"); !closed(c) {
		t.Error("with two each, a third of one of them is open")
	}
	if !answered(greedy[2]) || !answered(greedy[3]) || !answered(modest[0]) {
		t.Error("who has two is not answered any more")
	}
}

// RS-01: who gives one up, and who does not.
func TestStreamsGiver(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	held := func(n int) []*net.TCPConn { return slices.Repeat([]*net.TCPConn{nil}, n) }
	for name, x := range map[string]struct {
		of    map[netip.Addr][]*net.TCPConn
		comes netip.Addr
		giver netip.Addr
		gives bool
	}{
		"nobody has any":             {nil, a, netip.Addr{}, false},
		"all are one's":              {map[netip.Addr][]*net.TCPConn{a: held(4)}, b, a, true},
		"all are the newcomer's":     {map[netip.Addr][]*net.TCPConn{a: held(4)}, a, a, false},
		"the largest gives":          {map[netip.Addr][]*net.TCPConn{a: held(1), b: held(3)}, a, b, true},
		"who has none gets one":      {map[netip.Addr][]*net.TCPConn{a: held(2), b: held(2)}, c, a, true},
		"it would only change hands": {map[netip.Addr][]*net.TCPConn{a: held(1), b: held(1)}, c, a, false},
		"three against two":          {map[netip.Addr][]*net.TCPConn{a: held(3), b: held(2)}, b, a, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStreams(4)
			if x.of != nil {
				s.of = x.of
			}
			if giver, gives := s.giver(x.comes); gives != x.gives || gives && giver != x.giver {
				t.Errorf("%v, %v", giver, gives)
			}
		})
	}
}
