// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

// mostStrangers bounds the connections on which nothing is asked for yet: anybody in the cluster's network may open
// some.
const mostStrangers = 256

// strangers are those connections, in the order in which they came. The oldest makes room for another, for the API says
// at once who it is.
type strangers struct {
	mu  sync.Mutex
	all []net.Conn
}

// state is called at each change of state of a server's connection.
func (s *strangers) state(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(c net.Conn) bool { return c == conn })
	if state != http.StateNew {
		return
	}
	if len(s.all) >= mostStrangers {
		below := s.all[0]
		if c, ok := below.(*tls.Conn); ok {
			below = c.NetConn() // to which there is nothing to say that could be waited for
		}
		_ = below.Close()
		s.all = s.all[1:]
	}
	s.all = append(s.all, conn)
}
