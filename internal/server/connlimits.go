// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/wherryproject/wherry/internal/connlimit"
	"github.com/wherryproject/wherry/internal/connlimit/shed"
)

// Of the descriptors that this process may have, connections to the API get three eighths and those to the node's API
// an eighth, those to the read-only port a thirty-second, and as many those to the health check ports of services. The
// rest is for what they lead to (a session takes up to four), the store, the runtime, and a reserve. Strangers are
// limited besides, since each of their connections takes some 20 KiB.
const (
	apiStrangers      = 4096
	nodeStrangers     = 1024
	readOnlyStrangers = 64
	healthStrangers   = 64
)

func (s *Server) apiConns() *connlimit.Limiter {
	return s.limiter("apiserver", shed.LimitsFor(s.parts.files.Limit()*3/8, apiStrangers))
}

func (s *Server) nodeConns() *connlimit.Limiter {
	return s.limiter("agent", shed.LimitsFor(s.parts.files.Limit()/8, nodeStrangers))
}

// readOnlyConns is that of the read-only port, where all are strangers.
func (s *Server) readOnlyConns() *connlimit.Limiter {
	return s.limiter("agent", shed.LimitsFor(s.parts.files.Limit()/32, readOnlyStrangers))
}

// healthConns is that of the health check ports of services, of all of them together: all who come are strangers, and
// whoever may make services makes ports.
func (s *Server) healthConns() *connlimit.Limiter {
	return s.limiter("service-proxy", shed.LimitsFor(s.parts.files.Limit()/32, healthStrangers))
}

func (s *Server) limiter(of string, limits shed.Limits) *connlimit.Limiter {
	return connlimit.New(connlimit.Config{Limits: limits, Short: s.parts.files.Short,
		Logger: s.log.With("component", of)})
}
