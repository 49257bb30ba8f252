// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/controllers/servicenames"
	"github.com/wherryproject/wherry/internal/membership"
	"github.com/wherryproject/wherry/internal/names"
)

// startFollowed has an agent of a wherry server follow the objects that it shares with its nodes: of others' pods, of
// the other nodes, and where names are answered.
func (s *Server) startFollowed(ctx context.Context) error {
	if s.parts.member.Server == nil || s.parts.runtime == nil {
		return nil
	}
	client, err := s.client("node-network")
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.InformerFor(&corev1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(membership.Pods(c), &corev1.Pod{}, resync,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	})
	factory.InformerFor(&corev1.Node{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(membership.Nodes(c), &corev1.Node{}, resync, cache.Indexers{})
	})
	s.parts.followed = factory
	s.parts.names = &nameService{poke: make(chan struct{}, 1), moves: make(chan struct{}, 1)}
	return s.followNames(ctx, client)
}

// followNames follows where the server's resolver is. Pods start soon after this, so it waits a moment for the answer.
func (s *Server) followNames(ctx context.Context, client kubernetes.Interface) error {
	own := fields.OneTermEqualSelector("metadata.name", names.ServiceName).String()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(names.ServiceNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = own }))
	services, slices := factory.Core().V1().Services(), factory.Discovery().V1().EndpointSlices()
	look := func() {
		svc, err := services.Lister().Services(names.ServiceNamespace).Get(names.ServiceName)
		if err != nil {
			return // it is not known, or there is none: nothing is carried that was not
		}
		slice, err := slices.Lister().EndpointSlices(names.ServiceNamespace).Get(names.ServiceName)
		if err != nil {
			slice = &discoveryv1.EndpointSlice{}
		}
		s.parts.names.set(servicenames.Where(svc, slice))
	}
	changed := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { look() }, UpdateFunc: func(any, any) { look() },
		DeleteFunc: func(any) { look() }}
	var known []cache.DoneChecker
	for _, i := range []cache.SharedIndexInformer{services.Informer(), slices.Informer()} {
		r, err := i.AddEventHandler(changed)
		if err != nil {
			return err
		}
		known = append(known, r.HasSyncedChecker())
	}
	s.parts.namesLoop = spawn("where names are answered", s.failed, func(ctx context.Context) error {
		factory.Start(ctx.Done())
		<-ctx.Done()
		factory.Shutdown()
		return nil
	})
	first, cancel := context.WithTimeout(ctx, servicesFirst)
	defer cancel()
	if cache.WaitFor(first, "", known...) {
		look() // each alone may have come before the other
	}
	return ctx.Err()
}

func (s *Server) stopFollowed(ctx context.Context) error { return stopAll(ctx, s.parts.namesLoop) }
