// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/pki"
)

func (s *Server) startAPI(ctx context.Context) (err error) {
	o := s.opts
	servers := o.EtcdServers
	if s.parts.etcd != nil {
		servers = []string{s.parts.etcd.Endpoint()}
	}
	s.parts.api, err = api.New(ctx, api.Config{
		DataDir:       o.DataDir,
		BindAddress:   o.BindAddress,
		SecurePort:    o.SecurePort,
		ExtraSANs:     o.ExtraSANs,
		EtcdServers:   servers,
		EtcdCAFile:    o.EtcdCAFile,
		EtcdCertFile:  o.EtcdCertFile,
		EtcdKeyFile:   o.EtcdKeyFile,
		EtcdPrefix:    o.EtcdPrefix,
		TokenAuthFile: o.TokenAuthFile,
		ServiceCIDR:   o.ServiceCIDR,
		Features:      s.features,
		Flags:         o.Flags,
		Audit:         &o.Audit,
		Serving:       &o.Serving,
		Admission:     o.Admission,

		Authentication: o.Authentication,
		Logger:         s.log,
	})
	if err != nil {
		return err
	}
	s.parts.apiLoop = spawn("api", s.failed, s.parts.api.Run)
	agent, err := s.parts.api.As("system:node:"+o.NodeName, user.NodesGroup)
	if err != nil {
		return err
	}
	s.parts.cluster = cluster{
		url: s.parts.api.URL(), config: agent, clientCAs: s.parts.api.CA().Pool(), serving: s.parts.api.CA(),
	}
	return s.parts.apiLoop.await(ctx, s.parts.api.Ready())
}

func (s *Server) stopAPI(ctx context.Context) error { return s.parts.apiLoop.stop(ctx) }

// startKubeconfigs writes the administrator's kubeconfig, and again before its certificate ends.
func (s *Server) startKubeconfigs(context.Context) error {
	renewing, err := pki.NewRenewing("kubeconfig", s.log, func() (cert, key []byte, err error) {
		text, err := s.parts.api.AdminKubeconfig()
		if err != nil {
			return nil, nil, err
		}
		if err := s.writeKubeconfigs(text); err != nil {
			return nil, nil, err
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil {
			return nil, nil, err
		}
		return config.CertData, config.KeyData, nil
	})
	if err != nil {
		return err
	}
	s.parts.kubeconfig = spawn("kubeconfig", s.failed, func(ctx context.Context) error {
		renewing.Run(ctx)
		return nil
	})
	return nil
}

func (s *Server) stopKubeconfigs(ctx context.Context) error { return s.parts.kubeconfig.stop(ctx) }

// writeKubeconfigs writes the administrator's kubeconfig into the data folder and where the user wants it.
func (s *Server) writeKubeconfigs(text []byte) error {
	if err := writeFile(Kubeconfig(s.opts.DataDir), text, 0o600); err != nil {
		return folderRefusal(s.opts.DataDir, err)
	}
	path := s.opts.WriteKubeconfig
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("--write-kubeconfig: %w", err)
	}
	if err := writeFile(path, text, 0o600); err != nil {
		return fmt.Errorf("--write-kubeconfig: %w", err)
	}
	return nil
}
