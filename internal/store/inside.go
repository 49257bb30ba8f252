// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.uber.org/zap"

	"github.com/wherryproject/wherry/internal/store/inspect"
)

// Inside is etcd without sockets, for a server that is simulated: all of [Etcd] but what listens, what holds the folder
// for one process, and the end of the process.
type Inside struct {
	Server *etcdserver.EtcdServer

	etcd *Etcd
	once sync.Once
}

// InsideOptions are what a simulation has otherwise than a server.
type InsideOptions struct {
	NoSync bool // leaves out every fsync
	// after how many changes etcd takes a snapshot and may drop older files of its log; 0: as a server does
	SnapshotCount uint64
}

// StartInside runs etcd on cfg.Dir and returns when it answers. Unlike under [Start], an etcd that gave
// up goes on after cfg.Failed was called: the caller sees to it that nothing of what it does then reaches anybody.
func StartInside(ctx context.Context, cfg Config, o InsideOptions) (*Inside, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, explain(cfg.Dir, err)
	}
	if err := checkRoom(cfg.Dir); err != nil {
		return nil, err
	}
	if err := sound(ctx, cfg); err != nil {
		return nil, err
	}
	var unable atomic.Pointer[error] // why it gave up in its start, if it did
	var started atomic.Bool
	e := &Etcd{log: newCore(cfg.Logger), database: inspect.DatabaseFile(cfg.Dir), pulse: newPulse()}
	e.purging = newPurge(cfg.Dir, e.log)
	e.verdict = &verdict{dead: make(chan struct{}), then: func() {}, missed: e.purging.missed, fail: func(err error) {
		if !started.Load() {
			why := unopened(cfg.Dir, err)
			unable.Store(&why)
		}
		if cfg.Failed != nil {
			cfg.Failed(explain(cfg.Dir, err))
		}
	}}
	quota := cmp.Or(cfg.Quota, defaultQuota)
	c, err := insideConfig(cfg.Dir, hardQuota(quota), e, o)
	if err != nil {
		return nil, err
	}
	server, err := etcdserver.NewServer(c)
	started.Store(true)
	if why := unable.Load(); why != nil { // a server's etcd ends there: what this one did afterwards never was
		if err == nil {
			server.Start() // only what was started can be stopped
			server.HardStop()
		}
		return nil, *why
	}
	if err != nil {
		return nil, unopened(cfg.Dir, err)
	}
	server.Start()
	<-server.ReadyNotify()
	e.keep(newKeeper(server, cfg.Dir, quota, hardQuota(quota), cfg.Logger))
	e.purging.start()
	return &Inside{Server: server, etcd: e}, nil
}

// insideConfig is what embed makes of [configure], as far as it matters without listeners.
func insideConfig(dir string, hard int64, e *Etcd, o InsideOptions) (config.ServerConfig, error) {
	urls, err := types.NewURLs([]string{"http://127.0.0.1:1"}) // it insists on one, and listens nowhere
	if err != nil {
		return config.ServerConfig{}, fmt.Errorf("etcd: %w", err)
	}
	d := configure(dir, hard, e.log, e.verdict, urls[0], urls[0])
	return config.ServerConfig{
		Name: memberName, DataDir: dir, NewCluster: true, InitialClusterToken: "inside",
		ClientURLs: urls, PeerURLs: urls, InitialPeerURLsMap: types.URLsMap{memberName: urls},
		SnapshotCount: cmp.Or(o.SnapshotCount, d.SnapshotCount), SnapshotCatchUpEntries: d.SnapshotCatchUpEntries,
		MaxSnapFiles: d.MaxSnapFiles, MaxWALFiles: d.MaxWalFiles,
		// Ticks cost time even where time costs nothing; nobody waits for an election here.
		TickMs: 100, ElectionTicks: 10, InitialElectionTickAdvance: true,
		QuotaBackendBytes: hard, MaxTxnOps: d.MaxTxnOps, MaxRequestBytes: d.MaxRequestBytes, MaxLearners: d.MaxLearners,
		AuthToken: d.AuthToken, BcryptCost: 4, TokenTTL: d.AuthTokenTTL,
		CompactHashCheckTime: d.CompactHashCheckTime, CompactionBatchLimit: d.CompactionBatchLimit,
		CompactionSleepInterval: d.CompactionSleepInterval, BackendBatchInterval: d.BackendBatchInterval,
		BackendBatchLimit: d.BackendBatchLimit, UnsafeNoFsync: o.NoSync,
		WatchProgressNotifyInterval: d.WatchProgressNotifyInterval, DowngradeCheckTime: d.DowngradeCheckTime,
		WarningApplyDuration: d.WarningApplyDuration, WarningUnaryRequestDuration: d.WarningUnaryRequestDuration,
		V2Deprecation: d.V2DeprecationEffective(), ServerFeatureGate: d.ServerFeatureGate,
		Logger: zap.New(e.log, zap.WithFatalHook(e.verdict), zap.WithPanicHook(e.verdict)),
	}, nil
}

// Stop ends it at once, as a process ends that is killed: nothing is handed over or written that was not on its way.
func (i *Inside) Stop() {
	i.once.Do(func() {
		i.etcd.purging.stop()
		i.etcd.rest()
		i.etcd.log.mute()
		i.Server.HardStop()
	})
}
