// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"errors"
	"net"
)

// CloseWrite closes the half of a connection that its peer reads from: the peer learns that nothing more comes, and may still speak. The
// error is errors.ErrUnsupported if the connection cannot be closed by halves.
func CloseWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Half is what a wrapper of a connection embeds instead of net.Conn, so that it can be closed by halves if what it wraps can.
type Half struct{ net.Conn }

// CloseWrite is [CloseWrite] of the wrapped connection.
func (h Half) CloseWrite() error { return CloseWrite(h.Conn) }
