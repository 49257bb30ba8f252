// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/authority"
	"github.com/wherryproject/wherry/internal/connlimit"
	"github.com/wherryproject/wherry/internal/connlimit/shed"
)

// connLimits bound the connections to the API's port, which anybody in the cluster's network may open: known is
// kube-apiserver alone, with a connection for each session, and strangers are also those who ask for its health.
func connLimits() shed.Limits { return shed.Limits{Strangers: 256, PerAddress: 64, Known: 4096} }

// Server is the API of debugging. Make it with New, serve with Run.
type Server struct {
	config    Config
	client    kubernetes.Interface
	listener  net.Listener
	conns     *connlimit.Limiter // keeps connections to it within limits
	authority *authority.Authority
	bundle    *authority.Bundle
	signer    *authority.Signer

	front      front
	authorizer authorizer.UnconditionalAuthorizer
	agents     *agents
	reach      *reach
	events     *events
	open       *open
	generic    *genericapiserver.GenericAPIServer

	alive context.Context // done when the server is to end by itself, for its cause
	end   context.CancelCauseFunc
}

// errRules ends a server that has not been made for the rules which the cluster has meanwhile.
var errRules = errors.New("the cluster has other kinds of rules for admission than when this server started: it must start again")

// New prepares a server: the authority, the port (taken from here on), every route. It fails with an error for the user
// when kube-apiserver does not answer, something is not installed or the port is taken. A server that is not going to
// Run must be closed by running it with a cancelled context.
func New(ctx context.Context, config Config) (_ *Server, err error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	s := &Server{config: config, open: newOpen()}
	s.alive, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	cluster := rest.CopyConfig(config.Cluster)
	cluster.QPS = -1 // kube-apiserver's own fairness bounds it
	cluster.UserAgent = "wherry-debug-api"
	if s.client, err = kubernetes.NewForConfig(cluster); err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	if err := s.loadAuthority(ctx, cluster); err != nil {
		return nil, err
	}
	if s.front, err = newFront(s.client); err != nil {
		return nil, err
	}
	if err := s.front.load(ctx); err != nil {
		return nil, err
	}
	if s.agents, err = newAgents(s.client, config.Namespace, config.AgentSelector); err != nil {
		return nil, err
	}
	s.reach = &reach{port: config.AgentPort, id: s.authority}
	s.events = &events{client: s.client, log: config.Logger}
	if s.listener, err = net.Listen("tcp", net.JoinHostPort(config.BindAddress,
		strconv.Itoa(config.Port))); err != nil {
		return nil, fmt.Errorf("port %d: %w", config.Port, err)
	}
	s.conns = connlimit.New(connlimit.Config{Limits: connLimits(), Logger: config.Logger})
	if err := s.assemble(cluster); err != nil {
		_ = s.listener.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) loadAuthority(ctx context.Context, cluster *rest.Config) (err error) {
	c := s.config
	if s.authority, err = authority.Load(ctx, s.client, c.Namespace, c.CASecret, c.serviceNames(),
		c.Logger); err != nil {
		return err
	}
	registrations, err := clientset.NewForConfig(cluster)
	if err != nil {
		return err
	}
	s.bundle = &authority.Bundle{Client: registrations, Name: c.APIService, CA: s.authority.CertPEM(),
		Check: s.authority.Check, Log: c.Logger}
	s.signer = &authority.Signer{Client: s.client, Authority: s.authority, Log: c.Logger,
		Agents: authority.Agents{Namespace: c.Namespace, Account: c.AgentAccount}}
	return nil
}

// Port is the one that the server listens on.
func (s *Server) Port() int {
	if a, ok := s.listener.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return s.config.Port
}

// stopTime is how long a stopping server waits for requests that are under way.
const stopTime = 5 * time.Second

// Run serves until ctx is done; then it ends the sessions that go through it, and returns nil. An error says that it
// must be started again. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	defer s.end(nil)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.alive, stop)()
	err := s.run(ctx)
	if s.alive.Err() != nil {
		return context.Cause(s.alive)
	}
	return err
}

func (s *Server) run(ctx context.Context) error {
	var parts sync.WaitGroup
	defer parts.Wait()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	parts.Go(func() { s.authority.Run(running) })
	parts.Go(func() {
		if err := s.bundle.Run(running); err != nil {
			s.end(fmt.Errorf("%w: this server must start again, to take the new one", err))
		}
	})
	parts.Go(func() { s.signer.Run(running) })
	parts.Go(func() { s.front.run(running) })
	if err := s.agents.run(running); err != nil {
		_ = s.listener.Close()
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer context.AfterFunc(ctx, s.open.end)()
	err := s.generic.PrepareRun().RunWithContext(ctx)
	s.open.end()
	return err
}
