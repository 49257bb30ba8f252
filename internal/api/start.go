// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/admission"
	"github.com/wherryproject/wherry/internal/api/authn"
	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/api/serviceips"
	"github.com/wherryproject/wherry/internal/api/serviceips/keeper"
	"github.com/wherryproject/wherry/internal/api/upstream"
	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/internal/streams"
)

// loadKeys reads what the server is known by, or makes it.
func (s *Server) loadKeys() (err error) {
	if s.who.ca, err = pki.LoadOrCreate(s.cfg.pki, "wherry-ca"); err != nil {
		return err
	}
	if err := os.Chmod(s.cfg.pki, 0o700); err != nil { // of a folder that an earlier version made
		return fmt.Errorf("folder of keys: %w", err)
	}
	if err := s.loadFront(); err != nil {
		return err
	}
	s.who.tokens, err = authn.LoadAccountTokens(s.cfg.pki, s.cfg.Authentication)
	return err
}

// listen takes the port.
func (s *Server) listen() (err error) {
	if s.ways.listener, err = openPort(s.cfg); err != nil {
		return err
	}
	if s.cfg.Conns != nil {
		s.ways.listener = s.cfg.Conns.Listener(s.ways.listener)
	}
	s.ways.listener = streams.Gathering(s.ways.listener)
	return nil
}

func openPort(s *completed) (net.Listener, error) {
	if s.Inside != nil {
		return s.Inside.Listener, nil
	}
	address := net.JoinHostPort(s.BindAddress, strconv.Itoa(s.SecurePort))
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d is in use: stop the program that uses it, or choose another port: %w",
			s.SecurePort, err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("port %d needs root: choose a port above 1023: %w", s.SecurePort, err)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

// openStorage connects to etcd.
func (s *Server) openStorage() (err error) {
	d := &s.data
	if d.schemes, err = schemes.New(); err != nil {
		return err
	}
	if d.addresses, err = serviceips.New(s.cfg.services); err != nil {
		return err
	}
	if d.nodePorts, err = serviceips.NewNodePorts(s.cfg.NodePorts); err != nil {
		return err
	}
	d.backend = newBackend(d.schemes, s.cfg.Config)
	d.backend.Rights = s.authorizing
	if d.stores, err = registry.OpenStores(d.backend, kinds.All(s.cfg.Features)); err != nil {
		d.stores.Close()
		return err
	}
	d.backend.Namespace = d.stores.Namespace
	ranges := d.stores[upstream.ServiceCIDRs]
	d.keeper = keeper.New(keeper.Config{Addresses: d.addresses, NodePorts: d.nodePorts,
		Services: d.stores["services"], Objects: d.stores[upstream.IPAddresses], Ranges: ranges,
		Status: ranges.Below()["status"].(rest.Updater), Firsts: d.backend.Firsts, Log: s.log})
	return nil
}

// reachNodes makes the ways to nodes and pods.
func (s *Server) reachNodes() error {
	config, err := s.newKubeletTLS()
	if err != nil {
		return err
	}
	w := &s.ways
	w.kubelets = connect.NewKubelets(s.data.stores.Node, config)
	s.who.kubeletCert.OnRenewal(w.kubelets.Close) // idle connections, which go on showing the one before
	w.proxies, w.nodePorts = connect.NewProxyTransport(), connect.NewNodePortTransport()
	return nil
}

// startAuthentication has tokens be judged by what is stored.
func (s *Server) startAuthentication() (err error) {
	s.who.tokens.Lookup = s.data.stores
	s.who.loopback = authn.NewLoopbackUsers(s.cfg.Authentication.APIAudiences)
	s.who.requests, err = authn.New(s.cfg.Authentication, s.cfg.pki, s.cfg.TokenAuthFile, s.who.ca, s.who.tokens)
	return err
}

// startAdmission makes the plug-ins; those of webhooks and policies begin when the server is assembled.
func (s *Server) startAdmission() (err error) {
	s.judges.admission, err = admission.New(s.cfg.admission, admission.Host{
		Stores: s.data.stores, Schemes: s.data.schemes, Audiences: s.cfg.Authentication.APIAudiences,
		Quotas: s.judges.quotas.Admission(), Locate: s.ways.kubelets.Locate, Log: s.log,
		Authorizer: s.authorizing, Connection: s.connection, Unenforced: s.cfg.Unenforced,
		Services: s.cfg.services,
	})
	return err
}
