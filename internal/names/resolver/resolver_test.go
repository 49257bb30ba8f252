// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/wherryproject/wherry/internal/names"
	"github.com/wherryproject/wherry/internal/names/wire"
)

// upstream is a resolver of the tests', over UDP and TCP. It answers with what its function makes of a question.
type upstream struct {
	at    netip.AddrPort
	asked atomic.Int32
}

func newUpstream(t *testing.T, answer func(q dnsmessage.Question, stream bool) *dnsmessage.Message) *upstream {
	t.Helper()
	l, err := listenAt(netip.MustParseAddr("127.0.0.1"), netip.AddrPort{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	u := &upstream{at: l.address}
	reply := func(packet []byte, stream bool) []byte {
		var m dnsmessage.Message
		if m.Unpack(packet) != nil || len(m.Questions) != 1 {
			return nil
		}
		if m.Questions[0].Type != dnsmessage.TypeHINFO { // a probe
			u.asked.Add(1)
		}
		out := answer(m.Questions[0], stream)
		if out == nil {
			return nil
		}
		out.ID, out.Response, out.Questions = m.ID, true, m.Questions
		text, err := out.Pack()
		if err != nil {
			t.Error(err)
		}
		return text
	}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := l.udp.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			if out := reply(buffer[:n], false); out != nil {
				_, _ = l.udp.WriteToUDPAddrPort(out, from)
			}
		}
	}()
	go func() {
		for {
			c, err := l.tcp.Accept()
			if err != nil {
				return
			}
			if packet, err := readMessage(c); err == nil {
				_ = writeMessage(c, reply(packet, true))
			}
			c.Close()
		}
	}()
	return u
}

// world is a resolver of the tests', with the listener that answers its pods.
type world struct {
	state   *state
	forward *forwarder
	listen  *listener
}

// newWorld starts one whose machine has the resolvers; without a zone it knows nothing yet.
func newWorld(t *testing.T, zone *names.Zone, conf string, port uint16) *world {
	t.Helper()
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{state: newState(wire.Picture{})}
	if zone != nil {
		w.state.replace(names.New(*zone), wire.Settings{Zone: *zone, ResolvConf: file, Service: netip.MustParseAddr("10.96.0.10")})
	}
	address := netip.MustParseAddr("127.0.0.1")
	var err error
	if w.listen, err = listenAt(address, netip.AddrPort{}, nil); err != nil {
		t.Fatal(err)
	}
	w.forward = newForwarder(w.state, netip.MustParseAddr("127.0.0.99"))
	w.forward.oneTry, w.forward.patience = 20*time.Second, time.Minute // what answers here does so, however busy the machine is
	w.forward.port = port
	w.listen.answer = answerer{state: w.state, forward: w.forward, turn: new(atomic.Uint32), locals: &locals{}}
	w.listen.serve(t.Context())
	t.Cleanup(w.listen.close)
	return w
}

func local() *names.Zone { return &names.Zone{Domain: "cluster.local"} }

// ask asks the resolver, over UDP or TCP.
func (w *world) ask(t *testing.T, network, name string, kind dnsmessage.Type) dnsmessage.Message {
	t.Helper()
	m, err := ask(network, w.listen.address, name, kind)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

func ask(network string, at netip.AddrPort, name string, kind dnsmessage.Type) (m dnsmessage.Message, err error) {
	q := dnsmessage.Message{Header: dnsmessage.Header{ID: 4711, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}
	packet, err := q.Pack()
	if err != nil {
		return m, err
	}
	c, err := net.Dial(network, at.String())
	if err != nil {
		return m, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	var out []byte
	if network == "tcp" {
		if err := writeMessage(c, packet); err != nil {
			return m, err
		}
		out, err = readMessage(c)
	} else {
		if _, err := c.Write(packet); err != nil {
			return m, err
		}
		out = make([]byte, 4096)
		var n int
		n, err = c.Read(out)
		out = out[:n]
	}
	if err != nil {
		return m, err
	}
	return m, m.Unpack(out)
}

// says is an answer in one line.
func says(m dnsmessage.Message) string {
	packed, err := m.Pack()
	if err != nil {
		return err.Error()
	}
	records, code, _ := names.Records(packed)
	out := []string{names.CodeName(code)}
	for _, r := range records {
		out = append(out, r.Word())
	}
	return strings.Join(out, " ")
}

func address(name string, last byte) dnsmessage.Resource {
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET, TTL: 60},
		Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, last}}}
}

// WL-13 (P): names outside of the cluster are asked of the machine's resolver once, and kept; ExternalName services lead there; over TCP
// an answer may be long.
func TestForward(t *testing.T) {
	u := newUpstream(t, func(q dnsmessage.Question, stream bool) *dnsmessage.Message {
		switch q.Name.String() {
		case "long.example.":
			if !stream {
				return &dnsmessage.Message{Header: dnsmessage.Header{Truncated: true}}
			}
			m := &dnsmessage.Message{}
			for i := range 100 {
				m.Answers = append(m.Answers, address("long.example.", byte(i)))
			}
			return m
		case "www.example.":
			return &dnsmessage.Message{Answers: []dnsmessage.Resource{address("www.example.", 7)}}
		}
		return &dnsmessage.Message{Header: dnsmessage.Header{RCode: dnsmessage.RCodeNameError}}
	})
	w := newWorld(t, local(), "nameserver 127.0.0.1\n", u.at.Port())
	w.state.apply(names.Change{Service: &names.Service{Namespace: "shop", Name: "ext", ExternalName: "www.example"}})
	for range 2 {
		if got := says(w.ask(t, "udp", "www.example.", dnsmessage.TypeA)); got != "NOERROR 192.0.2.7" {
			t.Error(got)
		}
	}
	if n := u.asked.Load(); n != 1 {
		t.Errorf("the resolver was asked %d times", n)
	}
	if got := says(w.ask(t, "udp", "ext.shop.svc.cluster.local.", dnsmessage.TypeA)); got != "NOERROR -> www.example 192.0.2.7" {
		t.Error(got)
	}
	if got := says(w.ask(t, "tcp", "nope.example.", dnsmessage.TypeA)); got != "NXDOMAIN" {
		t.Error(got)
	}
	if m := w.ask(t, "udp", "long.example.", dnsmessage.TypeA); !m.Truncated || len(m.Answers) != 0 {
		t.Errorf("over UDP: %d answers, truncated %v", len(m.Answers), m.Truncated)
	}
	if m := w.ask(t, "tcp", "long.example.", dnsmessage.TypeA); m.Truncated || len(m.Answers) != 100 {
		t.Errorf("over TCP: %d answers, truncated %v", len(m.Answers), m.Truncated)
	}
	if n := len(w.forward.slots); n != 0 {
		t.Errorf("%d questions wait for ever", n)
	}
}

// WL-13 (P): a name of the cluster is not asked of others, nor said not to exist, before the world is known.
func TestUnknownWorld(t *testing.T) {
	w := newWorld(t, nil, "", 1)
	if got := says(w.ask(t, "udp", "kubernetes.default.svc.cluster.local.", dnsmessage.TypeA)); got != "SERVFAIL" {
		t.Error(got)
	}
	w.state.replace(names.New(*local()), wire.Settings{Zone: *local()})
	if got := says(w.ask(t, "udp", "kubernetes.default.svc.cluster.local.", dnsmessage.TypeA)); got != "NXDOMAIN" {
		t.Error(got)
	}
}

// WL-13 (P): a resolver that asks back is found out at the first question, named, and not asked any more. Until then the question waits for
// itself, and does not go round.
func TestLoop(t *testing.T) {
	var w *world
	var rounds atomic.Int32
	u := newUpstream(t, func(q dnsmessage.Question, _ bool) *dnsmessage.Message {
		if q.Type != dnsmessage.TypeHINFO {
			rounds.Add(1)
		}
		m, err := ask("udp", w.listen.address, q.Name.String(), q.Type)
		if err != nil {
			return nil
		}
		return &m
	})
	w = newWorld(t, local(), "nameserver 127.0.0.1\n", u.at.Port())
	w.forward.oneTry, w.forward.patience = oneTry, patience // nobody answers before these are over
	troubles, done := w.state.troubles()
	defer done()
	if got := says(w.ask(t, "udp", "www.example.", dnsmessage.TypeA)); got != "SERVFAIL" {
		t.Error(got)
	}
	if text := <-troubles; !strings.Contains(text, "the resolver 127.0.0.1") || !strings.Contains(text, "loop forever") {
		t.Error(text)
	}
	before := rounds.Load()
	if before > 3 {
		t.Errorf("the question went round %d times", before)
	}
	if got := says(w.ask(t, "udp", "other.example.", dnsmessage.TypeA)); got != "SERVFAIL" || rounds.Load() != before {
		t.Errorf("%s; it was asked again", got)
	}
}

// WL-13 (P): a resolv.conf that names this very resolver, or none, is said to.
func TestRefusedResolvers(t *testing.T) {
	for conf, want := range map[string]string{"nameserver 10.96.0.10\n": "10.96.0.10, which is this cluster's own resolver", "": "names no resolver"} {
		w := newWorld(t, local(), conf, 1)
		troubles, done := w.state.troubles()
		if got := says(w.ask(t, "udp", "www.example.", dnsmessage.TypeA)); got != "SERVFAIL" {
			t.Error(got)
		}
		if text := <-troubles; !strings.Contains(text, want) {
			t.Errorf("%q: %s", conf, text)
		}
		done()
	}
}

// WL-14 (P): what a pod asks is remembered by who it is, and not at all if nobody wants it.
func TestAsked(t *testing.T) {
	w := newWorld(t, local(), "", 1)
	w.state.apply(names.Change{Pod: &names.Pod{Namespace: "a", Name: "p", UID: "u", IPs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}})
	w.ask(t, "udp", "dns-version.cluster.local.", dnsmessage.TypeTXT)
	w.ask(t, "tcp", "www.example.", dnsmessage.TypeA)
	got := w.state.asked("u")
	if len(got.Asked) != 2 || got.Asked[0].Answer[0] != names.Version || got.Asked[1].Code != "SERVFAIL" || got.Asked[1].From != "there is no resolver to ask" {
		t.Errorf("%+v", got)
	}
	w.state.replace(names.New(*local()), wire.Settings{Zone: *local(), NoBook: true})
	if got := w.state.asked("u"); !got.Off || got.Asked != nil {
		t.Errorf("%+v", got)
	}
}

// WL-13 (P): who is neither a pod nor this machine gets no answer.
func TestStrangers(t *testing.T) {
	w := newWorld(t, &names.Zone{Domain: "cluster.local", Networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}}, "", 1)
	packet := make([]byte, 0, 64)
	packet = binary.BigEndian.AppendUint16(packet, 1)
	packet = append(packet, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1)
	for from, want := range map[string]bool{"10.1.0.5": true, "127.0.0.1": true, "10.2.0.5": false, "192.0.2.200": false} {
		q, out, done := w.listen.answer.begin(packet, netip.MustParseAddr(from), false)
		if answered := !done || out != nil; answered != want {
			t.Errorf("%s: %v, %+v", from, answered, q)
		}
	}
}

// WL-12 (P): many ask at the same time while names come and go; each is answered with what was true at some time.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t, local(), "", 1)
	ctx, stop := context.WithCancel(t.Context())
	var changes sync.WaitGroup
	changes.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			w.state.apply(names.Change{Gone: i%2 == 1, Service: &names.Service{Namespace: "a", Name: "s", IPs: []netip.Addr{netip.MustParseAddr("10.96.0.3")}}})
			if i%100 == 0 {
				if p, ok := w.state.picture(); !ok || p.World == nil {
					t.Error("no picture")
				}
			}
		}
	})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				m, err := ask([]string{"udp", "tcp"}[i%2], w.listen.address, "s.a.svc.cluster.local.", dnsmessage.TypeA)
				if got := says(m); err != nil || got != "NOERROR 10.96.0.3" && got != "NXDOMAIN" {
					t.Error(fmt.Sprint(got, err))
				}
			}
		})
	}
	all.Wait()
	stop()
	changes.Wait()
}
