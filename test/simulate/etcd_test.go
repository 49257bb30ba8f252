// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/features"
	"go.uber.org/zap"
)

// startEtcd starts etcd over a folder, without a port. Nothing is synced to the disk: what dies here is the process, not the machine.
func startEtcd(dir string) (*etcdserver.EtcdServer, error) {
	urls, err := types.NewURLs([]string{"http://127.0.0.1:1"}) // it insists on one, and listens nowhere
	if err != nil {
		return nil, err
	}
	d := embed.NewConfig()
	s, err := etcdserver.NewServer(config.ServerConfig{
		Name: "simulated", DataDir: dir, NewCluster: true, InitialClusterToken: "simulated",
		ClientURLs: urls, PeerURLs: urls, InitialPeerURLsMap: types.URLsMap{"simulated": urls},
		SnapshotCount: d.SnapshotCount, SnapshotCatchUpEntries: d.SnapshotCatchUpEntries,
		TickMs: d.TickMs, ElectionTicks: int(d.ElectionMs / d.TickMs), InitialElectionTickAdvance: true,
		MaxTxnOps: d.MaxTxnOps, MaxRequestBytes: d.MaxRequestBytes, MaxLearners: 1, AuthToken: "simple", BcryptCost: 4,
		CompactionBatchLimit: 1000, CompactionSleepInterval: time.Millisecond,
		BackendBatchInterval: 100 * time.Millisecond, BackendBatchLimit: 10000, UnsafeNoFsync: true,
		WarningApplyDuration: time.Hour, WarningUnaryRequestDuration: time.Hour,
		V2Deprecation: config.V2DeprDefault, ServerFeatureGate: features.NewDefaultServerFeatureGate("simulated", zap.NewNop()),
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	s.Start()
	<-s.ReadyNotify()
	return s, nil
}

// client calls etcd directly.
func client(s *etcdserver.EtcdServer) *clientv3.Client {
	c := v3client.New(s)
	c.Watcher = newWatcher(s.Watchable())
	return c
}
