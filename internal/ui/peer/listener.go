// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
)

// Listener accepts the connections of some users' programs, and closes those of others.
type Listener struct {
	net.Listener // TCP, on loopback
	Allowed      []int
	// Refused is called with a user whose connection was closed; -1: it is not known whose it was.
	Refused func(uid int)
	Tables  string // the folder that has the kernel's tables; "": /proc/self/net
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid := l.owner(c)
		if slices.Contains(l.Allowed, uid) {
			return c, nil
		}
		_ = c.Close() // nothing was written to it
		l.Refused(uid)
	}
}

// owner is whose program has the other end; -1: it is not known.
func (l *Listener) owner(c net.Conn) int {
	ours, theirs, ok := ends(c)
	if !ok {
		return -1
	}
	folder := l.Tables
	if folder == "" {
		folder = "/proc/self/net"
	}
	for _, name := range []string{"tcp", "tcp6"} { // a program may use a socket for both families
		table, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			continue // without IPv6 there is no tcp6
		}
		if uid, ok := Owner(string(table), theirs, ours); ok {
			return uid
		}
	}
	return -1
}

func ends(c net.Conn) (ours, theirs netip.AddrPort, ok bool) {
	local, okLocal := c.LocalAddr().(*net.TCPAddr)
	remote, okRemote := c.RemoteAddr().(*net.TCPAddr)
	if !okLocal || !okRemote {
		return ours, theirs, false
	}
	plain := func(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
	return plain(local.AddrPort()), plain(remote.AddrPort()), true
}
