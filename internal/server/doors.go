// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/wherryproject/wherry/internal/door"
	"github.com/wherryproject/wherry/internal/door/crowd"
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

func (s *Server) apiDoor() *door.Door {
	return s.door("apiserver", crowd.LimitsFor(s.parts.files.Limit()*3/8, apiStrangers))
}

func (s *Server) nodeDoor() *door.Door {
	return s.door("agent", crowd.LimitsFor(s.parts.files.Limit()/8, nodeStrangers))
}

// readOnlyDoor is that of the read-only port, where all are strangers.
func (s *Server) readOnlyDoor() *door.Door {
	return s.door("agent", crowd.LimitsFor(s.parts.files.Limit()/32, readOnlyStrangers))
}

// healthDoor is that of the health check ports of services, of all of them together: all who come are strangers, and
// whoever may make services makes ports.
func (s *Server) healthDoor() *door.Door {
	return s.door("service-proxy", crowd.LimitsFor(s.parts.files.Limit()/32, healthStrangers))
}

func (s *Server) door(of string, limits crowd.Limits) *door.Door {
	return door.New(door.Config{Limits: limits, Short: s.parts.files.Short, Logger: s.log.With("component", of)})
}
