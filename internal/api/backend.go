// SPDX-License-Identifier: Apache-2.0

package api

import (
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/wherryproject/wherry/internal/api/firsts"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
)

func newBackend(s *schemes.Schemes, cfg Config) *registry.Backend {
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
	if cfg.Etcd != nil {
		b.Etcd = cfg.Etcd
		// as the library does: how long a request waited is on record
		b.Etcd.KV = etcd3.NewETCDLatencyTracker(b.Etcd.KV)
	}
	if cfg.Inside != nil {
		b.Etcd = cfg.Inside.Etcd
	}
	return b
}
