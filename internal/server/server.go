// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
	"github.com/wherryproject/wherry/internal/features"
	"github.com/wherryproject/wherry/internal/netpolicy"
	"github.com/wherryproject/wherry/internal/node"
)

// stopTimeout bounds an orderly stop; what has not ended then dies with the process.
const stopTimeout = 30 * time.Second

// goneTimeout is that of a server without its store: most parts cannot end in order.
const goneTimeout = 2 * time.Second

// needsRoot says why a server cannot be anybody's.
const needsRoot = "wherry needs root to create containers"

// Server is one wherry server. Make it with New, use it for one Run.
type Server struct {
	opts     Options
	features *features.Gates
	log      *slog.Logger
	crashes  *ondemand.Crashes
	agent    atomic.Pointer[node.Agent] // nil until it is ready

	parts     parts
	failed    chan error
	giveUp    context.CancelCauseFunc // the start
	storeGone atomic.Bool             // the store will not answer any more
	refused   atomic.Bool             // the start failed: what it made on the machine is taken back
	ready     chan struct{}
	loginFile sync.Mutex                         // the file of the node's logins at registries
	enforcer  atomic.Pointer[netpolicy.Enforcer] // of network policies; nil: nobody enforces any
}

// New checks the options. Nothing is touched until Run.
func New(opts Options, log *slog.Logger) (*Server, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	gates, err := features.New(opts.FeatureGates)
	if err != nil {
		return nil, fmt.Errorf("--feature-gates: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Server{opts: opts, features: gates, log: log, crashes: ondemand.CatchCrashes(), failed: make(chan error, 1),
		ready: make(chan struct{})}, nil
}

// Options returns the options as completed.
func (s *Server) Options() Options { return s.opts }

// Ready is closed when the API answers and the node is Ready.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Run starts the server, serves until ctx ends, and stops it; pods go on running. It returns nil after an orderly stop,
// a *Refusal when the start cannot be, an *AgainError when the program is to be executed again, and otherwise the error
// of the part that failed first. What a start that failed has made on the machine is taken back.
func (s *Server) Run(ctx context.Context) error {
	if err := checkRoot(os.Geteuid(), needsRoot); err != nil {
		return err
	}
	manager, err := takeNotifier()
	if err != nil {
		return err
	}
	began := time.Now()
	list := s.components()
	switch {
	case s.opts.Standalone:
		list = s.aloneComponents()
	case s.opts.Join != "":
		list = s.agentComponents()
	}
	g := &group{list: list, log: s.log}
	starting, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	s.giveUp = giveUp
	err = g.start(starting)
	s.refused.Store(err != nil)
	if err != nil {
		err = startedInVain(err, s.opts.Again)
	} else {
		s.log.Info("server is ready", "url", s.parts.url(), "node", s.opts.NodeName, "data", s.opts.DataDir, "took",
			time.Since(began).Round(time.Millisecond))
		if nerr := manager.send("READY=1"); nerr != nil {
			s.log.Warn("cannot tell the service manager that the server is ready", "err", nerr)
		}
		close(s.ready)
		select {
		case <-ctx.Done():
		case err = <-s.failed:
			s.log.Error("a part of the server failed", "err", err)
		}
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = nil // asked to stop while starting
	}
	if _, again := errors.AsType[*AgainError](err); !again {
		_ = manager.send("STOPPING=1") // nothing depends on it
	}
	limit := stopTimeout
	if s.storeGone.Load() {
		limit = goneTimeout
	}
	if s.parts.runtime != nil {
		s.parts.runtime.Leave()
	}
	stopCtx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if serr := g.stop(stopCtx); serr != nil && !s.storeGone.Load() {
		if err == nil {
			return fmt.Errorf("the server did not shut down cleanly: %w", serr)
		}
		s.log.Error("the server did not shut down cleanly", "err", serr)
	}
	return err
}
