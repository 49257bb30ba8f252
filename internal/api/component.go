// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"slices"

	"github.com/wherryproject/wherry/internal/api/authz"
	"github.com/wherryproject/wherry/internal/api/resourcequota"
)

// component is one part of the server.
type component struct {
	name  string
	after []string // components that must be up before, whose parts this one uses
	start func() error
	stop  func() // nil: nothing is to be undone
}

// components are the parts of the server, in the order in which they start. They are undone in reverse. A start that is
// given up, by ctx, ends before the costly part, after all that may be wrong with the configuration was told.
func (s *Server) components(ctx context.Context) []component {
	return []component{
		// A policy that makes no sense refuses the start before anything is made.
		{"audit log", nil, s.openRecorder, func() {
			if err := s.served.recorder.Close(); err != nil {
				s.log.Error("cannot close the audit log", "err", err)
			}
		}},
		{"keys", nil, s.loadKeys, nil},
		{"port", nil, s.listen, func() { s.ways.listener.Close() }},
		{"loopback", nil, func() (err error) {
			s.ways.loopback, err = newLoopback(s.cfg.Inside)
			return err
		}, nil}, // Run has it drained
		{"storage", nil, s.openStorage, func() {
			s.data.keeper.Close()
			s.data.stores.Close()
		}},
		{"nodes", []string{"keys", "storage"}, s.reachNodes, func() {
			s.ways.kubelets.Close()
			s.ways.proxies.CloseIdleConnections()
			s.ways.nodePorts.CloseIdleConnections()
		}},
		{"authentication", []string{"keys", "storage"}, s.startAuthentication, func() { s.who.requests.Close() }},
		{"authorization", []string{"storage"}, func() error {
			s.judges.rights = authz.New(s.data.stores)
			return nil
		}, nil},
		{"quotas", []string{"storage"}, func() error {
			s.judges.quotas = resourcequota.New(s.data.stores, s.data.schemes, s.log)
			return nil
		}, func() { s.judges.quotas.Close() }},
		{"admission", []string{"storage", "nodes", "quotas"}, s.startAdmission, func() { s.judges.admission.Close() }},
		{"aggregation", []string{"keys", "loopback", "storage"}, s.startAggregation,
			func() { s.served.aggregation.Close() }},
		{"handlers", []string{"audit log", "keys", "port", "loopback", "storage", "authentication", "authorization",
			"admission", "aggregation"}, func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return s.assemble()
		}, func() {
			s.served.custom.Close()
			s.served.custom.Generic().Destroy()
		}},
		{"debugging", []string{"storage", "nodes", "quotas", "admission", "handlers"}, s.startDebugging,
			func() { s.served.debugging.record.Close() }},
		{"routes", []string{"nodes", "authentication", "authorization", "handlers", "debugging"}, s.install, nil},
	}
}

// start brings components up, one after the other, until one fails.
func (s *Server) start(list []component) error {
	for _, c := range list {
		if err := c.start(); err != nil {
			return err
		}
		s.up = append(s.up, c)
	}
	return nil
}

// free undoes what was started.
func (s *Server) free() {
	for _, c := range slices.Backward(s.up) {
		if c.stop != nil {
			c.stop()
		}
	}
	s.up = nil
}
