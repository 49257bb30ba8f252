// SPDX-License-Identifier: Apache-2.0

package api

import "k8s.io/apiserver/pkg/storage/storagebackend"

func newBackend(s *schemes, cfg Config) *backend {
	c := storagebackend.NewDefaultConfig(cfg.EtcdPrefix, nil)
	c.Transport.ServerList = cfg.EtcdServers
	c.Transport.TrustedCAFile = cfg.EtcdCAFile
	c.Transport.CertFile = cfg.EtcdCertFile
	c.Transport.KeyFile = cfg.EtcdKeyFile
	if cfg.Room != nil {
		c.CompactionInterval = 0 // it drops history itself
	}
	b := &backend{schemes: s, features: cfg.Features, config: *c, room: cfg.Room}
	if cfg.Inside != nil {
		b.etcd = cfg.Inside.Etcd
	}
	return b
}
