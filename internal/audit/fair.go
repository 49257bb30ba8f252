// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"sync"
	"time"

	internal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
)

// fair writes the events of users who write more than their share to logs with rotations of their own (busy), so that
// they do not push out what others did. The webhook's events are not shared out: what it keeps is its own.
type fair struct {
	audit.Backend // the log
	busy          audit.Backend
	now           func() time.Time

	rate, burst float64 // bytes a second, and at once

	mu     sync.Mutex
	shares map[string]share
	swept  time.Time
}

// share is what an owner may still write, in bytes, as of a time.
type share struct {
	left float64
	at   time.Time
}

// newFair gives each owner the size of the whole log for a day, and a fifth of a file at once.
func newFair(log, busy audit.Backend, o LogOptions) *fair {
	file := float64(o.MaxSize) * (1 << 20)
	return &fair{
		Backend: log, busy: busy, now: time.Now, rate: file * float64(o.MaxBackups+1) / (24 * 60 * 60), burst: file / 5,
		shares: map[string]share{},
	}
}

// ProcessEvents implements audit.Sink.
func (f *fair) ProcessEvents(events ...*internal.Event) bool {
	ok := true
	for _, ev := range events {
		to := f.Backend
		if !f.within(owner(ev.User.Username), size(ev)) {
			to = f.busy
		}
		ok = to.ProcessEvents(ev) && ok
	}
	return ok
}

// Run implements audit.Backend.
func (f *fair) Run(stop <-chan struct{}) error {
	if err := f.Backend.Run(stop); err != nil {
		return err
	}
	return f.busy.Run(stop)
}

// Shutdown implements audit.Backend.
func (f *fair) Shutdown() {
	f.Backend.Shutdown()
	f.busy.Shutdown()
}

// within charges an owner, if there is enough left.
func (f *fair) within(who string, bytes int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	f.sweep(now)
	s := f.current(who, now)
	ok := s.left >= float64(bytes)
	if ok {
		s.left -= float64(bytes)
	}
	f.shares[who] = s
	return ok
}

func (f *fair) current(who string, now time.Time) share {
	s, known := f.shares[who]
	if !known {
		return share{left: f.burst, at: now}
	}
	return share{left: min(f.burst, s.left+f.rate*max(0, now.Sub(s.at).Seconds())), at: now}
}

// sweep forgets those who have all of their share again, now and then.
func (f *fair) sweep(now time.Time) {
	if now.Sub(f.swept) < time.Minute {
		return
	}
	f.swept = now
	for who := range f.shares {
		if f.current(who, now).left >= f.burst {
			delete(f.shares, who)
		}
	}
}

// size is about how many bytes an event takes in the log.
func size(ev *internal.Event) int {
	n := 600 + len(ev.RequestURI) + len(ev.UserAgent)
	for key, value := range ev.Annotations {
		n += len(key) + len(value)
	}
	for _, group := range ev.User.Groups {
		n += len(group)
	}
	if ev.ResponseStatus != nil {
		n += len(ev.ResponseStatus.Message)
	}
	if ev.RequestObject != nil {
		n += len(ev.RequestObject.Raw)
	}
	if ev.ResponseObject != nil {
		n += len(ev.ResponseObject.Raw)
	}
	return n
}
