// SPDX-License-Identifier: Apache-2.0

package door

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/wherryproject/wherry/internal/door/crowd"
	"github.com/wherryproject/wherry/internal/streams"
)

// StrangerTime is that of a Config without one: ample for a handshake over a slow line.
const StrangerTime = 15 * time.Second

// tellAgain is how seldom the log says that connections were closed.
const tellAgain = time.Minute

// Config says how a door is kept.
type Config struct {
	Limits crowd.Limits
	// StrangerTime is how long a connection may be without a request in progress while nobody has shown credentials on
	// it: for the TLS handshake and the first request, and then between requests. 0: StrangerTime.
	StrangerTime time.Duration
	// Short reports that file descriptors run short; nil: never.
	Short  func() bool
	Logger *slog.Logger // nil: silent
}

// Door keeps the connections of one port to their limits. Its methods are safe for concurrent use.
type Door struct {
	cfg Config

	mu        sync.Mutex
	last      uint64
	open      map[uint64]*conn
	at        map[string]*conn // by ends, as a request names them
	strangers int
	from      map[string]int // strangers by address
	known     int
	closed    int // since the last log line
	told      time.Time
}

// New makes a door.
func New(c Config) *Door {
	if c.StrangerTime == 0 {
		c.StrangerTime = StrangerTime
	}
	if c.Short == nil {
		c.Short = func() bool { return false }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Door{cfg: c, open: map[uint64]*conn{}, at: map[string]*conn{}, from: map[string]int{}}
}

// Listener is l behind the door.
func (d *Door) Listener(l net.Listener) net.Listener { return &listener{Listener: l, door: d} }

// Handler counts the requests in progress on each connection. It has to be the outermost handler of the port.
func (d *Door) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := d.connOf(r)
		if c == nil {
			next.ServeHTTP(w, r)
			return
		}
		d.running(c, +1)
		defer d.running(c, -1)
		next.ServeHTTP(w, r)
	})
}

// Knows says that the credentials of r are a user's, so that its connection is no longer a stranger's.
func (d *Door) Knows(r *http.Request, user string) {
	c := d.connOf(r)
	if c == nil || user == "" {
		return
	}
	d.mu.Lock()
	if d.open[c.id] != c {
		d.mu.Unlock()
		return
	}
	if c.user == "" {
		d.uncount(c)
		d.known++
		c.timer.Stop()
	}
	c.user = user
	victims := d.excess(c)
	d.mu.Unlock()
	d.part(victims)
}

// ends is how a request and its connection find one another.
func ends(local, remote string) string { return local + " " + remote }

func (d *Door) connOf(r *http.Request) *conn {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at[ends(local.String(), r.RemoteAddr)]
}

func (d *Door) running(c *conn, by int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.running += by
	c.asked = time.Now()
	c.touch()
}

// admit lets a connection in, and others out if there are too many. It reports whether this one stays.
func (d *Door) admit(inner net.Conn) (*conn, bool) {
	c := &conn{Half: streams.Half{Conn: inner},
		door: d, from: source(inner.RemoteAddr()), ends: ends(inner.LocalAddr().String(), inner.RemoteAddr().String()),
		asked: time.Now()}
	c.touch()
	short := d.cfg.Short()
	d.mu.Lock()
	d.last++
	c.id = d.last
	d.open[c.id], d.at[c.ends] = c, c
	d.strangers++
	d.from[c.from]++
	c.timer = time.AfterFunc(d.cfg.StrangerTime, func() { d.overdue(c) })
	var victims []*conn
	if short {
		victims = d.pick(crowd.Relief(d.facts()))
	} else {
		victims = d.excess(c)
	}
	stays := d.open[c.id] == c
	d.mu.Unlock()
	d.part(victims)
	return c, stays
}

// relieve closes connections because there are no descriptors; false: there is none to close.
func (d *Door) relieve() bool {
	d.mu.Lock()
	victims := d.pick(crowd.Relief(d.facts()))
	d.mu.Unlock()
	d.part(victims)
	return len(victims) > 0
}

// excess takes out those that are too many. Most of the time nobody is, and nothing is looked through: c is the only
// one that has come, or has become somebody's.
func (d *Door) excess(c *conn) []*conn {
	l := d.cfg.Limits
	if d.strangers <= l.Strangers && d.known <= l.Known && d.from[c.from] <= l.PerAddress {
		return nil
	}
	return d.pick(crowd.Excess(d.facts(), l))
}

func (d *Door) facts() []crowd.Conn {
	out := make([]crowd.Conn, 0, len(d.open))
	for id, c := range d.open {
		out = append(out, crowd.Conn{ID: id, From: c.from, User: c.user, Running: c.running,
			Last: time.Unix(0, c.used.Load())})
	}
	return out
}

func (d *Door) pick(ids []uint64) []*conn {
	out := make([]*conn, 0, len(ids))
	for _, id := range ids {
		c := d.open[id]
		d.remove(c)
		out = append(out, c)
	}
	d.closed += len(out)
	return out
}

// remove takes a connection off the books.
func (d *Door) remove(c *conn) {
	if d.open[c.id] != c {
		return
	}
	delete(d.open, c.id)
	if d.at[c.ends] == c {
		delete(d.at, c.ends)
	}
	if c.user == "" {
		d.uncount(c)
	} else {
		d.known--
	}
	c.timer.Stop()
}

func (d *Door) uncount(c *conn) {
	d.strangers--
	if d.from[c.from]--; d.from[c.from] == 0 {
		delete(d.from, c.from)
	}
}

// part closes connections that are off the books already, and says so now and then.
func (d *Door) part(victims []*conn) {
	for _, c := range victims {
		c.cut()
	}
	if len(victims) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.told) >= tellAgain {
		d.cfg.Logger.Warn("too many connections: closed those that had been quiet longest", "closed", d.closed,
			"strangers", d.strangers, "known", d.known, "lastFrom", victims[len(victims)-1].from)
		d.told, d.closed = now, 0
	}
}

// overdue ends a stranger's connection whose time is over.
func (d *Door) overdue(c *conn) {
	d.mu.Lock()
	if d.open[c.id] != c || c.user != "" {
		d.mu.Unlock()
		return
	}
	left := d.cfg.StrangerTime
	if c.running == 0 {
		left = d.cfg.StrangerTime - time.Since(c.asked)
	}
	if left > 0 {
		c.timer.Reset(left)
		d.mu.Unlock()
		return
	}
	d.remove(c)
	d.mu.Unlock()
	c.cut()
}

type listener struct {
	net.Listener
	door *Door
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		switch {
		case exhausted(err) && l.door.relieve():
			continue
		case err != nil: // also EMFILE: net/http tries again, ever less often
			return nil, err
		}
		if c, ok := l.door.admit(inner); ok {
			return c, nil
		}
	}
}

func exhausted(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// source is who shares the limits of strangers with this address.
func source(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return a.String()
	}
	ip, ok := netip.AddrFromSlice(tcp.IP)
	if !ok {
		return a.String()
	}
	if ip = ip.Unmap(); ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}
