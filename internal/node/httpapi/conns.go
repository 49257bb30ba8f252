// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net"
	"sync"

	"github.com/wherryproject/wherry/internal/streams"
)

// conns knows every open connection, also those a stream took over, so that all can be cut.
type conns struct {
	mu     sync.Mutex
	open   map[*conn]struct{}
	closed bool
}

func newConns() *conns { return &conns{open: map[*conn]struct{}{}} }

func (c *conns) track(l net.Listener) net.Listener { return &listener{Listener: l, conns: c} }

func (c *conns) close() {
	c.mu.Lock()
	c.closed = true
	open := c.open
	c.open = map[*conn]struct{}{}
	c.mu.Unlock()
	for conn := range open {
		_ = conn.Conn.Close()
	}
}

type listener struct {
	net.Listener
	conns *conns
}

func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Half: streams.Half{Conn: inner}, conns: l.conns}
	l.conns.mu.Lock()
	defer l.conns.mu.Unlock()
	if l.conns.closed {
		_ = inner.Close()
		return nil, net.ErrClosed
	}
	l.conns.open[c] = struct{}{}
	return c, nil
}

type conn struct {
	streams.Half
	conns *conns
}

func (c *conn) Close() error {
	c.conns.mu.Lock()
	delete(c.conns.open, c)
	c.conns.mu.Unlock()
	return c.Conn.Close()
}
