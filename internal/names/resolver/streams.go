// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"net"
	"net/netip"
	"sync"
)

// maxStreams bounds TCP connections, of all clients together.
const maxStreams = 128

// streams are the TCP connections that are open. When there are as many as there may be, who has the most gives one to
// who has fewer, so that one pod that holds connections keeps no other from asking over TCP (RS-01).
type streams struct {
	mu   sync.Mutex
	most int
	all  int
	of   map[netip.Addr][]*net.TCPConn // the oldest first
}

func newStreams(most int) *streams { return &streams{most: most, of: map[netip.Addr][]*net.TCPConn{}} }

// enter takes a connection in, and reports whether it did. One that was closed to make room for it has left.
func (s *streams) enter(c *net.TCPConn, from netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.most {
		giver, ok := s.giver(from)
		if !ok {
			return false
		}
		oldest := s.of[giver][0]
		s.take(oldest, giver)
		_ = oldest.Close() // whoever reads from it sees that, and leaves
	}
	s.of[from] = append(s.of[from], c)
	s.all++
	return true
}

// giver is who has the most, if that is more than who comes would have then.
func (s *streams) giver(comes netip.Addr) (giver netip.Addr, ok bool) {
	for a, held := range s.of {
		if len(held) > len(s.of[giver]) || len(held) == len(s.of[giver]) && a.Less(giver) {
			giver = a
		}
	}
	return giver, len(s.of[giver]) > len(s.of[comes])+1
}

// leave is told of each connection that entered, once it is done with.
func (s *streams) leave(c *net.TCPConn, from netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(c, from)
}

// take takes a connection out, if it is still in.
func (s *streams) take(c *net.TCPConn, from netip.Addr) {
	held := s.of[from]
	for i := range held {
		if held[i] == c {
			s.of[from] = append(held[:i:i], held[i+1:]...)
			s.all--
			break
		}
	}
	if len(s.of[from]) == 0 {
		delete(s.of, from)
	}
}
