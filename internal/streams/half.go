// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"errors"
	"io"
	"net"
	"time"
)

// CloseWrite closes the half of a connection that its peer reads from: the peer learns that nothing more comes, and may
// still speak. The error is errors.ErrUnsupported if the connection cannot be closed by halves.
func CloseWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Half is what a wrapper of a connection embeds instead of net.Conn, so that it can be closed by halves if what it
// wraps can.
type Half struct{ net.Conn }

// CloseWrite is [CloseWrite] of the wrapped connection.
func (h Half) CloseWrite() error { return CloseWrite(h.Conn) }

// Lingering is how long a peer may take to close its side after it was notified that nothing more comes.
const Lingering = 5 * time.Second

// End closes a connection on which all is sent. Closed at once, it would take from the peer what it has not read yet,
// if the peer sends something meanwhile. So it is notified first that nothing more comes, and may close its side; heard
// is closed when it has, by a reader of the caller's. Neither that nor a write that is stuck is waited for longer than
// [Lingering].
func End(c net.Conn, heard <-chan struct{}) error {
	_ = c.SetDeadline(time.Now().Add(Lingering)) // closing the half waits for a write that is stuck
	if CloseWrite(c) == nil {
		timer := time.NewTimer(Lingering)
		defer timer.Stop()
		select {
		case <-heard:
		case <-timer.C:
		}
	}
	return c.Close()
}

// Linger is a connection that is closed by [End], for a library that closes at once: what the client says meanwhile is
// heard and dropped. Its Close returns when the client has closed its side, and by [Lingering] at the latest.
func Linger(c net.Conn) net.Conn { return lingering{Half{c}} }

type lingering struct{ Half }

// Close implements io.Closer.
func (l lingering) Close() error {
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = io.Copy(io.Discard, l.Conn) // until it is closed, by either
	}()
	return End(l.Conn, heard)
}
