// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/wherryproject/wherry/internal/streams"
)

// conn is a connection of a Limiter.
type conn struct {
	streams.Half
	limiter *Limiter
	id      uint64
	from    string
	ends    string
	used    atomic.Int64 // when a byte or a request came or went last, in nanoseconds since 1970

	// Below: under the lock of the Limiter.
	user    string
	running int
	asked   time.Time // when a request began or ended last, or the connection came
	timer   *time.Timer
}

func (c *conn) touch() { c.used.Store(time.Now().UnixNano()) }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.touch()
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.limiter.mu.Lock()
	c.limiter.remove(c)
	c.limiter.mu.Unlock()
	return c.Conn.Close()
}

// cut closes the connection from the server's side. A stranger's leaves nothing behind in the kernel either.
func (c *conn) cut() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok && c.user == "" {
		_ = tcp.SetLinger(0) // it is closed either way
	}
	_ = c.Conn.Close() // whoever reads from it gets an error
}
