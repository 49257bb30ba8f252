// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/wherryproject/wherry/internal/names"
	"github.com/wherryproject/wherry/internal/names/wire"
)

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
	// write is how long a line may wait to be taken.
	write = 5 * time.Second
)

// Link feeds a resolver. Make it with New, use it for one Run.
type Link struct {
	resolver Resolver
	settings wire.Settings
	all      func() []names.Change // the world as a whole
	moved    func(context.Context, wire.Hello) error
	log      *slog.Logger

	mu   sync.Mutex
	conn net.Conn // nil: the world is sent as a whole when there is one again
}

// New makes a link. all is the world as it is; moved is called with where pods are answered whenever the link has
// connected.
func New(r Resolver, s wire.Settings, all func() []names.Change, moved func(context.Context, wire.Hello) error,
	log *slog.Logger) *Link {
	return &Link{resolver: r, settings: s, all: all, moved: moved, log: log}
}

// Run keeps the resolver at work and fed until ctx ends.
func (l *Link) Run(ctx context.Context) {
	retry := firstRetry
	for ctx.Err() == nil {
		began := time.Now()
		err := l.during(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > lastRetry {
			retry = firstRetry
		}
		l.log.Warn("the resolver of names is gone: it is started again", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry):
		}
		retry = min(2*retry, lastRetry)
	}
}

// during feeds the resolver as long as it lives.
func (l *Link) during(ctx context.Context) error {
	if _, _, err := l.resolver.Start(ctx); err != nil {
		return err
	}
	c, lines, hello, err := dial(ctx, l.resolver.Dir, wire.Want{What: wire.Feed})
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err := l.sendAll(c); err != nil {
		return err
	}
	defer l.disconnected()
	if err := l.moved(ctx, hello); err != nil {
		return err
	}
	for {
		var notice wire.Notice
		if err := lines.Read(&notice); err != nil {
			return err
		}
		if notice.Trouble != "" {
			l.log.Warn("names outside of the cluster", "trouble", notice.Trouble)
		}
	}
}

func (l *Link) sendAll(c net.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = c.SetWriteDeadline(time.Now().Add(2 * write))
	out := bufio.NewWriter(c)
	if err := errors.Join(wire.Write(out, wire.Line{Settings: &l.settings}), wire.Write(out,
		wire.Line{Begin: true})); err != nil {
		return err
	}
	for _, change := range l.all() {
		if err := wire.Write(out, wire.Line{Change: &change}); err != nil {
			return err
		}
	}
	if err := errors.Join(wire.Write(out, wire.Line{End: true}), out.Flush()); err != nil {
		return err
	}
	l.conn = c
	return nil
}

func (l *Link) disconnected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = nil
}

// Send sends what current returns. Without a resolver nothing is sent: it gets everything when it is there.
func (l *Link) Send(current func() names.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return
	}
	change := current()
	_ = l.conn.SetWriteDeadline(time.Now().Add(write))
	if err := wire.Write(l.conn, wire.Line{Change: &change}); err != nil {
		l.conn.Close() // what was not sent is sent with all the rest
		l.conn = nil
	}
}
