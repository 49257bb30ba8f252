// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/debugrun"
	"github.com/wherryproject/wherry/internal/controllers/debugruns"
	"github.com/wherryproject/wherry/internal/controllers/namespace"
	"github.com/wherryproject/wherry/internal/controllers/nodelifecycle"
	"github.com/wherryproject/wherry/internal/controllers/podgc"
	"github.com/wherryproject/wherry/internal/controllers/rootca"
	"github.com/wherryproject/wherry/internal/controllers/scheduler"
	"github.com/wherryproject/wherry/internal/controllers/serviceaccount"
)

// endedPodsKept is how many pods that have ended are kept, as Kubernetes has it.
const endedPodsKept = 12500

// startControllers starts the control loops over informers they share.
func (s *Server) startControllers(context.Context) error {
	client, err := s.client("controllers")
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(rest.CopyConfig(s.parts.cluster.config))
	if err != nil {
		return err
	}
	records, err := debugrun.NewClient(s.parts.cluster.config)
	if err != nil {
		return err
	}
	log := s.log.With("component", "controllers")
	factory := informers.NewSharedInformerFactory(client, 0)
	loops := []func(context.Context) error{
		scheduler.New(client, factory, s.features, log).Run,
		serviceaccount.New(client, factory, log).Run,
		rootca.New(client, factory, log, s.parts.api.CA().CertPEM()).Run,
		namespace.New(client, objects, factory, log).Run,
		nodelifecycle.New(client, factory, log).Run,
		podgc.New(client, factory, log, endedPodsKept).Run,
		debugruns.New(client, records, factory, log, debugruns.Most).Run,
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

func (s *Server) stopControllers(ctx context.Context) error { return s.parts.controllers.stop(ctx) }
