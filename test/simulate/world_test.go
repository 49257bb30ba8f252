// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/controllers/namespace"
	"github.com/wherryproject/wherry/internal/controllers/nodelifecycle"
	"github.com/wherryproject/wherry/internal/controllers/podgc"
	"github.com/wherryproject/wherry/internal/controllers/rootca"
	"github.com/wherryproject/wherry/internal/controllers/scheduler"
	"github.com/wherryproject/wherry/internal/controllers/serviceaccount"
	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/debug/bookkeeping"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/node"
	"github.com/wherryproject/wherry/internal/node/ops"
	"github.com/wherryproject/wherry/internal/socketpair"
	"github.com/wherryproject/wherry/internal/store"
	"github.com/wherryproject/wherry/test/simulate/disk"
)

// world is a machine: its disk, its runtime, and at most one server at a time.
type world struct {
	t          *testing.T
	seed       uint64
	noSync     bool       // the store does not sync what it acknowledges
	lost       bool       // no server starts any more
	self       string     // this program
	apart      bool       // the database is looked at by another process, as a server always does it: it may not be readable
	dir        string     // of the machine, with its logs
	home       string     // the data folder of the server
	disk       *disk.Disk // below it; nil: an ordinary folder, and what dies is never more than a process
	rng        *rand.Rand // of the fate alone
	fake       *critest.Fake
	truth      *cri.Client
	misfortune *misfortune
	judge      *judge
	log        *slog.Logger
	wasFull    bool // the disk was, at some time

	mu     sync.Mutex
	server *server // nil: none runs
	up     chan struct{}
}

// server is one life of the server's process.
type server struct {
	life   *life
	cancel context.CancelFunc
	etcd   *store.Inside
	api    *api.Server
	config *rest.Config
	loops  errgroup.Group
}

// boot starts the server, as a machine does whose service has ended: again and again, if need be. It tells whether one runs.
func (w *world) boot() bool {
	for range 100 {
		err := w.start()
		if err == nil {
			return true
		}
		w.log.Info("start failed", "err", err)
		if damage, ok := errors.AsType[*store.DamageError](err); ok {
			w.judge.fault("nothing happened to the store that may happen to one, and it is damaged: %v", damage)
			w.lost = true
			return false
		}
		time.Sleep(time.Second)
	}
	w.judge.fault("the server does not start any more")
	w.lost = true
	return false
}

func (w *world) start() (err error) {
	wal.SegmentSizeBytes = segmentBytes
	s := &server{life: &life{misfortune: w.misfortune, dead: make(chan struct{})}}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	defer func() {
		if err != nil {
			w.end(s, processEnds)
		}
	}()
	c := store.Config{Dir: filepath.Join(w.home, "etcd"), Logger: w.log, Failed: func(err error) { w.gaveUp(s, err) }}
	if w.apart {
		c.Inspector = []string{w.self, databaseWord}
	}
	if s.etcd, err = store.StartInside(ctx, c, store.InsideOptions{NoSync: w.disk == nil || w.noSync, SnapshotCount: 200}); err != nil {
		return err
	}
	kv := client(s.etcd.Server, s.life)
	inside := &registry.Inside{Etcd: kv, Listener: socketpair.NewInMemory(), Loopback: socketpair.NewInMemory()}
	if s.api, err = api.New(ctx, api.Config{DataDir: filepath.Join(w.home, "data"), SecurePort: 6443, Inside: inside, Logger: w.log}); err != nil {
		return err
	}
	s.loops.Go(func() error { return s.api.Run(ctx) })
	select {
	case <-s.life.dead:
		return *s.life.gaveUp.Load()
	case <-s.api.Ready():
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("the API server does not become ready: %s", unready(ctx, s.api))
	}
	s.config = s.api.Loopback()
	s.config.Timeout = 30 * time.Second
	if err := w.startControllers(ctx, s); err != nil {
		return err
	}
	if err := w.startAgent(ctx, s); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server = s
	close(w.up)
	return nil
}

func (w *world) startControllers(ctx context.Context, s *server) error {
	client, err := kubernetes.NewForConfig(s.api.Loopback())
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(s.api.Loopback())
	if err != nil {
		return err
	}
	records, err := debugrun.NewClient(s.api.Loopback())
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	runs := []func(context.Context) error{
		scheduler.New(client, factory, nil, w.log).Run,
		serviceaccount.New(client, factory, w.log).Run,
		rootca.New(client, factory, w.log, s.api.CA().CertPEM()).Run,
		namespace.New(client, objects, factory, w.log).Run,
		nodelifecycle.New(client, factory, w.log).Run,
		podgc.New(client, factory, w.log, 100).Run,
		bookkeeping.New(client, records, factory, w.log, bookkeeping.Most).Run,
	}
	factory.Start(ctx.Done())
	for _, run := range runs {
		s.loops.Go(func() error { return run(ctx) })
	}
	s.loops.Go(func() error {
		<-ctx.Done()
		factory.Shutdown()
		return nil
	})
	return nil
}

func (w *world) startAgent(ctx context.Context, s *server) error {
	client, err := kubernetes.NewForConfig(s.api.Loopback())
	if err != nil {
		return err
	}
	certPEM, keyPEM, err := s.api.CA().Serving([]string{"n"}, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return err
	}
	line := &wire{fake: w.fake, truth: w.truth, life: s.life, begun: w.judge.started}
	a, err := node.New(ctx, node.Config{
		NodeName: "n", NodeIPs: []string{"192.0.2.1"}, Client: client, CRI: line.client(),
		DataDir: filepath.Join(w.home, "data"), Logs: ops.LogFolders{Pods: filepath.Join(w.dir, "logs")},
		Listener: socketpair.NewInMemory(), Certificate: pair, ClientCAs: s.api.CA().Pool(), ClusterDomain: "cluster.local", Version: "v1",
		Eviction: node.Eviction{StallFile: filepath.Join(w.dir, "none")}, // time would stand still while somebody waits for the kernel
		Logger:   w.log,
	})
	if err != nil {
		return err
	}
	s.loops.Go(func() error { return a.Run(ctx) })
	select {
	case <-s.life.dead:
		return *s.life.gaveUp.Load()
	case <-a.Ready():
		return nil
	case <-time.After(10 * time.Minute):
		return fmt.Errorf("the agent does not become ready")
	}
}

// client is one of whatever server runs, as soon as one does.
func (w *world) client(ctx context.Context) (*kubernetes.Clientset, error) {
	for {
		w.mu.Lock()
		s, up := w.server, w.up
		w.mu.Unlock()
		if s != nil {
			return kubernetes.NewForConfig(s.config)
		}
		select {
		case <-up:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// unready says what a server waits for.
func unready(ctx context.Context, s *api.Server) string {
	client, err := kubernetes.NewForConfig(s.Loopback())
	if err != nil {
		return err.Error()
	}
	text, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "").DoRaw(ctx)
	return fmt.Sprintf("%s (%v)", text, err)
}
