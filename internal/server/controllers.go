// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/controllers/attachments"
	"github.com/wherryproject/wherry/internal/controllers/bootstraptokens"
	"github.com/wherryproject/wherry/internal/controllers/certificates"
	"github.com/wherryproject/wherry/internal/controllers/loadbalancer"
	"github.com/wherryproject/wherry/internal/controllers/localvolumes"
	"github.com/wherryproject/wherry/internal/controllers/namespace"
	"github.com/wherryproject/wherry/internal/controllers/nodelifecycle"
	"github.com/wherryproject/wherry/internal/controllers/ondemand"
	"github.com/wherryproject/wherry/internal/controllers/podcertificates"
	"github.com/wherryproject/wherry/internal/controllers/podgc"
	"github.com/wherryproject/wherry/internal/controllers/roleaggregation"
	"github.com/wherryproject/wherry/internal/controllers/rootca"
	"github.com/wherryproject/wherry/internal/controllers/scheduler"
	"github.com/wherryproject/wherry/internal/controllers/serviceaccount"
	"github.com/wherryproject/wherry/internal/controllers/volumes"
	"github.com/wherryproject/wherry/internal/controllers/workloads"
	"github.com/wherryproject/wherry/internal/debug/bookkeeping"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/localvolume"
	"github.com/wherryproject/wherry/internal/pki"
)

// endedPodsKept is how many pods that have ended are kept, as Kubernetes has it.
const endedPodsKept = 12500

// startControllers starts the control loops over informers they share.
func (s *Server) startControllers(context.Context) error {
	users := loopbackClients{server: s}
	factory := informers.NewSharedInformerFactory(users.client(rbac.Controllers), 0)
	s.parts.factory = factory
	loops, err := s.loops(&users, factory, s.log.With("component", "controllers"))
	if err == nil {
		err = users.err
	}
	if err != nil {
		return err
	}
	s.parts.controllers = spawn("controllers", s.failed, func(ctx context.Context) error {
		defer factory.Shutdown()
		g, ctx := errgroup.WithContext(ctx)
		factory.Start(ctx.Done())
		for _, run := range loops {
			g.Go(func() error { return run(ctx) })
		}
		return g.Wait()
	})
	return nil
}

// loops are the control loops of this server.
func (s *Server) loops(users *loopbackClients, factory informers.SharedInformerFactory,
	log *slog.Logger) ([]func(context.Context) error, error) {
	objects, err := metadata.NewForConfig(users.config(rbac.NamespaceController))
	if err != nil {
		return nil, err
	}
	everything, err := metadata.NewForConfig(users.config(rbac.Controllers))
	if err != nil {
		return nil, err
	}
	records, err := debugrun.NewClient(users.config(rbac.DebugRunController))
	if err != nil {
		return nil, err
	}
	classes := users.client(rbac.LocalVolumes)
	loops := []func(context.Context) error{
		scheduler.New(users.client(rbac.Scheduler), factory, s.features, log).Run,
		serviceaccount.New(users.client(rbac.ServiceAccountController), factory, log).Run,
		rootca.New(users.client(rbac.RootCAPublisher), factory, log, s.parts.api.CA().CertPEM()).Run,
		namespace.New(users.client(rbac.NamespaceController), objects, factory, log).Run,
		nodelifecycle.New(users.client(rbac.NodeController), factory, log).Run,
		podgc.New(users.client(rbac.PodGarbageCollector), factory, log, endedPodsKept).Run,
		bookkeeping.New(users.client(rbac.DebugRunController), records, factory, log, bookkeeping.Most).Run,
		certificates.New(users.client(rbac.CertificateController), factory, log, s.parts.api.CA(),
			s.opts.SigningDuration).Run,
		roleaggregation.New(users.client(rbac.RoleAggregation), factory, log).Run,
		bootstraptokens.New(users.client(rbac.TokenCleaner), log).Run,
		ondemand.New(s.lateControllers(), ondemand.Config{
			As:        s.controllerConfig,
			Looking:   ondemand.Looking{Client: users.client(rbac.Controllers), Metadata: everything},
			Informers: factory, Firsts: s.parts.api.Firsts(), Crashes: s.crashes, Log: log,
		}).Run,
		func(ctx context.Context) error { return localvolumes.EnsureClass(ctx, classes, log) },
	}
	pool, err := s.opts.balancerPool()
	if err != nil {
		return nil, err
	}
	loops = append(loops, loadbalancer.New(users.client(rbac.LoadBalancer), factory, pool, log).Run)
	if s.parts.etcd != nil {
		loops = append(loops, s.keepSpaces(factory))
	}
	return loops, nil
}

// lateControllers are those that start with what they are for.
func (s *Server) lateControllers() []ondemand.Controller {
	return append(slices.Concat(workloads.Controllers(), volumes.Controllers()), attachments.Controller(),
		podcertificates.Controller(filepath.Join(PKI(s.opts.DataDir), pki.PodsDir),
			cmp.Or(strings.TrimSuffix(s.opts.ClusterDomain, "."), defaultDomain)),
		localvolumes.Controller(s.opts.NodeName, localvolume.New(claimsFolder(s.opts.DataDir))))
}

func (s *Server) stopControllers(ctx context.Context) error { return s.parts.controllers.stop(ctx) }

// controllerConfig is how a controller of Kubernetes' own reaches the API, as its own user.
func (s *Server) controllerConfig(name string) (*rest.Config, error) {
	config, err := s.parts.api.As(rbac.ControllerUser(name))
	if err != nil {
		return nil, err
	}
	return clientConfig(config, name), nil
}
