// SPDX-License-Identifier: Apache-2.0

package api

import (
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/wherryproject/wherry/internal/api/firsts"
	"github.com/wherryproject/wherry/internal/api/registry"
)

func newBackend(s *registry.Schemes, cfg Config) *registry.Backend {
	c := storagebackend.NewDefaultConfig(cfg.EtcdPrefix, nil)
	c.Transport.ServerList = cfg.EtcdServers
	c.Transport.TrustedCAFile = cfg.EtcdCAFile
	c.Transport.CertFile = cfg.EtcdCertFile
	c.Transport.KeyFile = cfg.EtcdKeyFile
	if cfg.Room != nil {
		c.CompactionInterval = 0 // it drops history itself
	}
	b := &registry.Backend{Schemes: s, Features: cfg.Features, Config: *c, Room: cfg.Room,
		Firsts: &firsts.Board{}}
	if cfg.Inside != nil {
		b.Etcd = cfg.Inside.Etcd
	}
	return b
}
