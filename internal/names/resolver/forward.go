// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/wherryproject/wherry/internal/names"
	"github.com/wherryproject/wherry/internal/names/cache"
	"github.com/wherryproject/wherry/internal/names/resolvers"
)

const (
	// oneTry is how long one resolver has to answer before the next is asked, patience how long all of them have:
	// clients ask again after five seconds.
	oneTry   = 1500 * time.Millisecond
	patience = 4500 * time.Millisecond
	// reread is how soon a resolv.conf is looked at again, when a question comes.
	reread = time.Second
)

// forwarder asks the machine's resolvers.
type forwarder struct {
	state *state
	own   netip.Addr // where this process answers
	port  uint16     // of the resolvers
	slots chan struct{}

	oneTry, patience time.Duration // as the constants, but for tests

	mu     sync.Mutex
	cache  cache.Cache
	calls  map[call]*calling
	looked time.Time
	read   stamp
	list   []netip.AddrPort
	first  int                       // of the list, the one that has answered last
	probes map[string]netip.AddrPort // names that only come back from a resolver that asks us
	loops  map[netip.AddrPort]bool
}

// stamp reports whether the files have changed.
type stamp struct {
	file       string
	service    netip.Addr
	when, then time.Time
}

// call is what questions that are asked once for all who ask have in common.
type call struct {
	cache.Key
	stream bool
}

// calling is a question that is on its way.
type calling struct {
	done    chan struct{}
	message []byte
	from    string
	err     error
}

func newForwarder(s *state, own netip.Addr) *forwarder {
	return &forwarder{state: s, own: own, port: resolvers.Port, slots: make(chan struct{}, waiting),
		oneTry: oneTry, patience: patience,
		calls: map[call]*calling{}, probes: map[string]netip.AddrPort{}, loops: map[netip.AddrPort]bool{}}
}

// kept is an answer that was given before.
func (f *forwarder) kept(q names.Query) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cache.Get(q, time.Now())
}

// ask asks on. Clients that ask the same at the same time get the same answer: a question that comes back to us,
// whichever way it has gone, waits for itself and does not go round.
func (f *forwarder) ask(ctx context.Context, q names.Query, stream bool) (message []byte, from string, err error) {
	if message, ok := f.kept(q); ok {
		return message, "kept", nil
	}
	key := call{cache.KeyOf(q), stream}
	f.mu.Lock()
	c := f.calls[key]
	if c == nil {
		c = &calling{done: make(chan struct{})}
		f.calls[key] = c
		f.mu.Unlock()
		c.message, c.from, c.err = f.exchange(ctx, q, stream)
		f.mu.Lock()
		delete(f.calls, key)
		if c.err == nil {
			f.cache.Put(q, c.message, time.Now())
		}
		close(c.done)
	}
	f.mu.Unlock()
	select {
	case <-c.done:
	case <-time.After(f.patience):
		return nil, "", errors.New("nobody has answered in time")
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	if c.err != nil {
		return nil, c.from, c.err
	}
	return cache.ForQuery(slices.Clone(c.message), q), c.from, nil
}

// exchange asks one resolver after the other, from the one on that has answered last.
func (f *forwarder) exchange(ctx context.Context, q names.Query, stream bool) (message []byte, from string, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	list, first := f.resolvers(ctx)
	if len(list) == 0 {
		return nil, "", errors.New("there is no resolver to ask")
	}
	for i := range list {
		n := (first + i) % len(list)
		got, code, tried := f.try(ctx, list[n], q, stream)
		if tried != nil {
			err = fmt.Errorf("%s: %w", list[n], tried)
			continue
		}
		message, from = got, list[n].Addr().String()
		if code != dnsmessage.RCodeServerFailure && code != dnsmessage.RCodeRefused {
			f.mu.Lock()
			f.first = n
			f.mu.Unlock()
			break
		}
	}
	if message == nil {
		return nil, "", err
	}
	return message, from, nil
}

// try asks one resolver: over UDP, and over TCP when its answer does not fit and the client can take it.
func (f *forwarder) try(ctx context.Context, at netip.AddrPort, q names.Query,
	stream bool) (message []byte, code dnsmessage.RCode, err error) {
	message, h, err := f.oneExchange(ctx, "udp", at, q)
	if err == nil && h.Truncated && stream {
		message, h, err = f.oneExchange(ctx, "tcp", at, q)
	}
	return message, h.RCode, err
}

// oneExchange sends a question from a port that nobody can guess, and waits for the answer.
func (f *forwarder) oneExchange(ctx context.Context, network string, at netip.AddrPort,
	q names.Query) (message []byte, h dnsmessage.Header, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.oneTry)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, network, at.String())
	if err != nil {
		return nil, h, plain(err)
	}
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(deadline)
	}
	var id [2]byte
	_, _ = rand.Read(id[:]) // it does not fail
	number := binary.BigEndian.Uint16(id[:])
	packet, err := q.Ask(number)
	if err != nil {
		return nil, h, err
	}
	if network == "tcp" {
		if err := writeMessage(c, packet); err != nil {
			return nil, h, plain(err)
		}
	} else if _, err := c.Write(packet); err != nil {
		return nil, h, plain(err)
	}
	buffer := make([]byte, 4<<10)
	for {
		if network == "tcp" {
			message, err = readMessage(c)
		} else {
			var n int
			n, err = c.Read(buffer)
			message = buffer[:n]
		}
		if err != nil {
			return nil, h, plain(err)
		}
		if h, err = cache.Checked(message, number, q.Question); err == nil {
			return message, h, nil
		}
	}
}

// plain leaves out of a network's error what the message has already.
func plain(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if op.Timeout() {
			return errors.New("no answer")
		}
		return op.Err
	}
	return err
}

// resolvers are those to ask, as the files have them now. Each is probed when it is new.
func (f *forwarder) resolvers(ctx context.Context) (list []netip.AddrPort, first int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= reread || now.Before(f.looked) {
		f.looked = now
		if s := f.stamp(); s != f.read {
			f.read = s
			f.choose(ctx)
		}
	}
	return slices.DeleteFunc(slices.Clone(f.list), func(a netip.AddrPort) bool { return f.loops[a] }), f.first
}

func (f *forwarder) stamp() stamp {
	settings := f.state.now()
	s := stamp{file: settings.ResolvConf, service: settings.Service}
	if s.file == "" {
		s.file = resolvers.File
	}
	if info, err := os.Stat(s.file); err == nil {
		s.when = info.ModTime()
	}
	if info, err := os.Stat(resolvers.Behind); err == nil {
		s.then = info.ModTime()
	}
	return s
}

// choose reads the files.
func (f *forwarder) choose(ctx context.Context) {
	text, _ := os.ReadFile(f.read.file) // none: there is nobody to ask
	behind, _ := os.ReadFile(resolvers.Behind)
	choice := resolvers.Choose(string(text), string(behind),
		func(a netip.Addr) bool { return a == f.own || a == f.read.service })
	f.list, f.first = nil, 0
	for _, r := range choice.Resolvers {
		f.list = append(f.list, netip.AddrPortFrom(r.Addr(), f.port))
	}
	clear(f.loops)
	clear(f.probes)
	f.state.calm()
	for _, r := range choice.Refused {
		f.state.trouble(fmt.Sprintf("%s names %s, which is this cluster's own resolver: it is not asked for other names, since it would ask itself; name the network's resolvers there",
			f.read.file, r.Addr()))
	}
	if len(f.list) == 0 && len(choice.Refused) == 0 {
		f.state.trouble(fmt.Sprintf("%s names no resolver: pods cannot look up names outside of the cluster",
			f.read.file))
	}
	for _, r := range f.list {
		f.probe(ctx, r)
	}
}

// probe asks a resolver for a name that nobody has. If the question comes to us, so would all others.
func (f *forwarder) probe(ctx context.Context, r netip.AddrPort) {
	var b [16]byte
	_, _ = rand.Read(b[:])
	text := hex.EncodeToString(b[:8]) + "." + hex.EncodeToString(b[8:])
	name, err := dnsmessage.NewName(text + ".")
	if err != nil {
		return
	}
	f.probes[text] = r
	go func() {
		q := names.Query{Question: dnsmessage.Question{Name: name, Type: dnsmessage.TypeHINFO,
			Class: dnsmessage.ClassINET}}
		_, _, _ = f.oneExchange(ctx, "udp", r, q) // who answers, and what, does not matter
	}()
}

// probed reports whether a name is a probe of ours: then its resolver asks us.
func (f *forwarder) probed(name string) bool {
	if len(name) != 33 || strings.Count(name, ".") != 1 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.probes[strings.ToLower(name)]
	if !ok {
		return false
	}
	if !f.loops[r] {
		f.loops[r] = true
		f.state.trouble(fmt.Sprintf("the resolver %s, of %s, asks this cluster's own resolver: it is no longer asked, since queries would loop forever; have it ask the network's resolvers",
			r.Addr(), f.read.file))
	}
	return true
}
