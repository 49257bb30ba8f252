// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"

	"github.com/wherryproject/wherry/internal/node/credentials"
	"github.com/wherryproject/wherry/internal/pki"
)

// nodeCert is the certificate that the node's API shows, and what keeps it from ending.
type nodeCert struct {
	get  credentials.Getter
	keep func(context.Context) // until the context is done; nil: nothing to do
}

// during runs the agent and keeps the certificate meanwhile.
func (c nodeCert) during(ctx context.Context, run func(context.Context) error) error {
	if c.keep == nil {
		return run(ctx)
	}
	keeping, cancel := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { c.keep(keeping) })
	defer keeper.Wait()
	defer cancel()
	return run(ctx)
}

// nodeCertificate is the user's, or one of the API server's CA, or, for another API server, one of a CA of our own or
// one that was asked for there.
func (s *Server) nodeCertificate() (nodeCert, error) {
	if s.opts.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(s.opts.CertFile, s.opts.KeyFile)
		if err != nil {
			return nodeCert{}, fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
		}
		return nodeCert{get: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }}, nil
	}
	var ips []net.IP
	for _, ip := range s.opts.NodeIPs {
		ips = append(ips, net.ParseIP(ip))
	}
	local := ips
	if at := net.ParseIP(s.opts.KubeletAddress); at != nil && !at.IsUnspecified() &&
		!slices.ContainsFunc(ips, at.Equal) {
		local = append(slices.Clone(ips), at)
	}
	own, err := pki.NewRenewing("node's API", s.log, func() ([]byte, []byte, error) {
		return s.parts.cluster.serving.Serving([]string{s.opts.NodeName}, local)
	})
	if err != nil {
		return nodeCert{}, err
	}
	if !s.opts.RotateServer {
		return nodeCert{own.ServerSide, own.Run}, nil
	}
	asked, err := credentials.NewServing(s.credentials(), s.parts.cluster.config, ips, own.ServerSide)
	if err != nil {
		return nodeCert{}, err
	}
	return nodeCert{asked.Get, func(ctx context.Context) {
		defer asked.Close()
		own.Run(ctx)
	}}, nil
}

// credentials says who the agent is towards another API server.
func (s *Server) credentials() credentials.Config {
	return credentials.Config{
		NodeName: s.opts.NodeName, Kubeconfig: s.opts.Join, Bootstrap: s.opts.Bootstrap,
		Dir: filepath.Join(s.opts.DataDir, "pki"), Logger: s.log.With("component", "credentials"),
	}
}
