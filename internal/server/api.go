// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/api/registry"
)

func (s *Server) startAPI(ctx context.Context) (err error) {
	o := s.opts
	var client *clientv3.Client
	var room registry.Room
	if s.parts.etcd != nil {
		client, room = s.parts.etcd.Client(), s.parts.etcd
	}
	s.parts.api, err = api.New(ctx, api.Config{
		DataDir:       o.DataDir,
		BindAddress:   o.BindAddress,
		SecurePort:    o.SecurePort,
		ExtraSANs:     o.ExtraSANs,
		Etcd:          client,
		EtcdServers:   o.EtcdServers,
		EtcdCAFile:    o.EtcdCAFile,
		EtcdCertFile:  o.EtcdCertFile,
		EtcdKeyFile:   o.EtcdKeyFile,
		EtcdPrefix:    o.EtcdPrefix,
		Room:          room,
		TokenAuthFile: o.TokenAuthFile,
		ServiceCIDR:   o.ServiceCIDR,
		NodePorts:     o.NodePorts,
		Features:      s.features,
		Flags:         o.Flags,
		Audit:         &o.Audit,
		Serving:       &o.Serving,
		Admission:     o.Admission,
		Unenforced:    s.unenforced,
		ClusterDomain: strings.TrimSuffix(o.ClusterDomain, "."),
		ClusterDNS:    o.ClusterDNS,

		Page:           o.Page,
		Authentication: o.Authentication,
		Conns:          s.apiConns(),
		Short:          s.parts.files.Short,
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
