// SPDX-License-Identifier: Apache-2.0

package socketpair

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Listener accepts connections made by its Dial: each a pair of connected sockets that have no name, so that nothing
// outside the process can reach them. (grpc's bufconn is not for this: a stale read deadline of its pipes makes
// net/http cancel live requests.)
type Listener struct {
	pair     func() (near, far net.Conn, err error)
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// New makes a listener that is open until Close.
func New() *Listener { return listener(socketPair) }

// NewInMemory is New with connections that are no sockets, each write of which waits for its reader: for bubbles of
// testing/synctest, in which time stands still while anybody waits for a socket.
func NewInMemory() *Listener {
	return listener(func() (near, far net.Conn, err error) {
		near, far = net.Pipe()
		return near, far, nil
	})
}

func listener(pair func() (near, far net.Conn, err error)) *Listener {
	return &Listener{pair: pair, accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to whoever accepts; it fails with net.ErrClosed once the listener is closed.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	near, far, err := l.pair()
	if err != nil {
		return nil, err
	}
	select {
	case l.accepted <- far:
		return near, nil
	case <-l.closed:
		err = net.ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	near.Close()
	far.Close()
	return nil, err
}

// Accept is part of [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close is part of [net.Listener].
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is part of [net.Listener].
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// sendSize is how much one side may have sent, with what the kernel needs for it, before it waits for the other.
const sendSize = 1 << 20

func socketPair() (near, far net.Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("connection in memory: %w", err)
	}
	for _, fd := range fds {
		// More than there is by itself takes root, and is not needed, only quicker: a stream has fewer turns.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendSize)
	}
	if near, err = connOf(fds[0]); err != nil {
		_ = unix.Close(fds[1])
		return nil, nil, err
	}
	if far, err = connOf(fds[1]); err != nil {
		near.Close()
		return nil, nil, err
	}
	return near, far, nil
}

// connOf takes over a socket.
func connOf(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "loopback")
	defer f.Close() // FileConn has its own copy
	return net.FileConn(f)
}
