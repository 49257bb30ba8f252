// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/wherryproject/wherry/internal/connlimit/shed"
	"github.com/wherryproject/wherry/internal/streams"
)

// StrangerTime is that of a Config without one: ample for a handshake over a slow line.
const StrangerTime = 15 * time.Second

// tellAgain is how seldom the log says that connections were closed.
const tellAgain = time.Minute

// Config says what a Limiter keeps to.
type Config struct {
	Limits shed.Limits
	// StrangerTime is how long a connection may be without a request in progress while nobody has shown credentials on
	// it: for the TLS handshake and the first request, and then between requests. 0: StrangerTime.
	StrangerTime time.Duration
	// Short reports that file descriptors run short; nil: never.
	Short  func() bool
	Logger *slog.Logger // nil: silent
}

// Limiter keeps the connections of one port to their limits. Its methods are safe for concurrent use.
type Limiter struct {
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

// New makes a Limiter.
func New(c Config) *Limiter {
	if c.StrangerTime == 0 {
		c.StrangerTime = StrangerTime
	}
	if c.Short == nil {
		c.Short = func() bool { return false }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Limiter{cfg: c, open: map[uint64]*conn{}, at: map[string]*conn{}, from: map[string]int{}}
}

// Listener is l within the limits.
func (lim *Limiter) Listener(l net.Listener) net.Listener {
	return &listener{Listener: l, limiter: lim}
}

// Handler counts the requests in progress on each connection. It has to be the outermost handler of the port.
func (lim *Limiter) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := lim.connOf(r)
		if c == nil {
			next.ServeHTTP(w, r)
			return
		}
		lim.running(c, +1)
		defer lim.running(c, -1)
		next.ServeHTTP(w, r)
	})
}

// Authenticated says that the credentials of r are a user's, so that its connection is no longer a stranger's.
func (lim *Limiter) Authenticated(r *http.Request, user string) {
	c := lim.connOf(r)
	if c == nil || user == "" {
		return
	}
	lim.mu.Lock()
	if lim.open[c.id] != c {
		lim.mu.Unlock()
		return
	}
	if c.user == "" {
		lim.uncount(c)
		lim.known++
		c.timer.Stop()
	}
	c.user = user
	victims := lim.excess(c)
	lim.mu.Unlock()
	lim.part(victims)
}

// ends is how a request and its connection find one another.
func ends(local, remote string) string { return local + " " + remote }

func (lim *Limiter) connOf(r *http.Request) *conn {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return nil
	}
	lim.mu.Lock()
	defer lim.mu.Unlock()
	return lim.at[ends(local.String(), r.RemoteAddr)]
}

func (lim *Limiter) running(c *conn, by int) {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	c.running += by
	c.asked = time.Now()
	c.touch()
}

// admit lets a connection in, and others out if there are too many. It reports whether this one stays.
func (lim *Limiter) admit(inner net.Conn) (*conn, bool) {
	c := &conn{Half: streams.Half{Conn: inner},
		limiter: lim, from: source(inner.RemoteAddr()), ends: ends(inner.LocalAddr().String(),
			inner.RemoteAddr().String()),
		asked: time.Now()}
	c.touch()
	short := lim.cfg.Short()
	lim.mu.Lock()
	lim.last++
	c.id = lim.last
	lim.open[c.id], lim.at[c.ends] = c, c
	lim.strangers++
	lim.from[c.from]++
	c.timer = time.AfterFunc(lim.cfg.StrangerTime, func() { lim.overdue(c) })
	var victims []*conn
	if short {
		victims = lim.pick(shed.Relief(lim.facts()))
	} else {
		victims = lim.excess(c)
	}
	stays := lim.open[c.id] == c
	lim.mu.Unlock()
	lim.part(victims)
	return c, stays
}

// relieve closes connections because there are no descriptors; false: there is none to close.
func (lim *Limiter) relieve() bool {
	lim.mu.Lock()
	victims := lim.pick(shed.Relief(lim.facts()))
	lim.mu.Unlock()
	lim.part(victims)
	return len(victims) > 0
}

// excess takes out those that are too many. Most of the time nobody is, and nothing is looked through: c is the only
// one that has come, or has become somebody's.
func (lim *Limiter) excess(c *conn) []*conn {
	l := lim.cfg.Limits
	if lim.strangers <= l.Strangers && lim.known <= l.Known && lim.from[c.from] <= l.PerAddress {
		return nil
	}
	return lim.pick(shed.Excess(lim.facts(), l))
}

func (lim *Limiter) facts() []shed.Conn {
	out := make([]shed.Conn, 0, len(lim.open))
	for id, c := range lim.open {
		out = append(out, shed.Conn{ID: id, From: c.from, User: c.user, Running: c.running,
			Last: time.Unix(0, c.used.Load())})
	}
	return out
}

func (lim *Limiter) pick(ids []uint64) []*conn {
	out := make([]*conn, 0, len(ids))
	for _, id := range ids {
		c := lim.open[id]
		lim.remove(c)
		out = append(out, c)
	}
	lim.closed += len(out)
	return out
}

// remove takes a connection off the books.
func (lim *Limiter) remove(c *conn) {
	if lim.open[c.id] != c {
		return
	}
	delete(lim.open, c.id)
	if lim.at[c.ends] == c {
		delete(lim.at, c.ends)
	}
	if c.user == "" {
		lim.uncount(c)
	} else {
		lim.known--
	}
	c.timer.Stop()
}

func (lim *Limiter) uncount(c *conn) {
	lim.strangers--
	if lim.from[c.from]--; lim.from[c.from] == 0 {
		delete(lim.from, c.from)
	}
}

// part closes connections that are off the books already, and says so now and then.
func (lim *Limiter) part(victims []*conn) {
	for _, c := range victims {
		c.cut()
	}
	if len(victims) == 0 {
		return
	}
	lim.mu.Lock()
	defer lim.mu.Unlock()
	if now := time.Now(); now.Sub(lim.told) >= tellAgain {
		lim.cfg.Logger.Warn("too many connections: closed those that had been quiet longest", "closed", lim.closed,
			"strangers", lim.strangers, "known", lim.known, "lastFrom", victims[len(victims)-1].from)
		lim.told, lim.closed = now, 0
	}
}

// overdue ends a stranger's connection whose time is over.
func (lim *Limiter) overdue(c *conn) {
	lim.mu.Lock()
	if lim.open[c.id] != c || c.user != "" {
		lim.mu.Unlock()
		return
	}
	left := lim.cfg.StrangerTime
	if c.running == 0 {
		left = lim.cfg.StrangerTime - time.Since(c.asked)
	}
	if left > 0 {
		c.timer.Reset(left)
		lim.mu.Unlock()
		return
	}
	lim.remove(c)
	lim.mu.Unlock()
	c.cut()
}

type listener struct {
	net.Listener
	limiter *Limiter
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		switch {
		case exhausted(err) && l.limiter.relieve():
			continue
		case err != nil: // also EMFILE: net/http tries again, ever less often
			return nil, err
		}
		if c, ok := l.limiter.admit(inner); ok {
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
