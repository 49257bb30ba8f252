// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	registrations "k8s.io/kube-aggregator/pkg/client/informers/externalversions"
	local "k8s.io/kube-aggregator/pkg/controllers/status/local"
	availability "k8s.io/kube-aggregator/pkg/controllers/status/metrics"
	"k8s.io/kube-aggregator/pkg/controllers/status/remote"
)

// lookedAgain is the longest time after which every APIService is looked at again; Kubernetes' controller shortens that
// for itself.
const lookedAgain = 5 * time.Minute

// lookers is how many APIServices' availability is looked at a time.
const lookers = 5

// running is what other servers need while there are some: what is known of APIServices, and Kubernetes' own
// controllers, which look whether they are available and what they serve.
type running struct {
	mu        sync.Mutex
	services  map[string]*v1.APIService
	discovery apiserver.DiscoveryAggregationController
	listed    map[string]bool // groups that stand in the plain list because of a route

	known chan struct{} // closed when all that were there have their routes and are in the documents
}

// run starts it. The caller holds the lock.
func (a *Aggregator) run() *running {
	r := &running{services: map[string]*v1.APIService{}, listed: map[string]bool{}, known: make(chan struct{}),
		discovery: apiserver.NewDiscoveryManager(a.documents.Aggregated.WithSource(aggregated.AggregatorSource))}
	a.going.Go(func() {
		if err := a.follow(r); err != nil {
			a.o.Log.Error("other API servers cannot be aggregated", "err", err)
		}
	})
	return r
}

// follow runs the watches and the controllers until the server stops.
func (a *Aggregator) follow(r *running) error {
	known := sync.OnceFunc(func() { close(r.known) })
	defer known()
	client, err := clientset.NewForConfig(a.o.Client)
	if err != nil {
		return err
	}
	core, err := kubernetes.NewForConfig(a.o.Client)
	if err != nil {
		return err
	}
	theirs := registrations.NewSharedInformerFactory(client, lookedAgain)
	ours := informers.NewSharedInformerFactory(core, 0)
	services := theirs.Apiregistration().V1().APIServices()
	seen, err := services.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { a.changed(r, obj, false) },
		UpdateFunc: func(_, obj any) { a.changed(r, obj, false) },
		DeleteFunc: func(obj any) { a.changed(r, obj, true) },
	})
	if err != nil {
		return err
	}
	metrics := availability.New()
	far, err := remote.New(services, ours.Core().V1().Services(), ours.Discovery().V1().EndpointSlices(),
		client.ApiregistrationV1(), nil, a.o.Certificate.PEM, a.o.Resolver, metrics)
	if err != nil {
		return err
	}
	near, err := local.New(services, client.ApiregistrationV1(), metrics)
	if err != nil {
		return err
	}
	done := a.context.Done()
	theirs.Start(done)
	ours.Start(done)
	defer theirs.Shutdown()
	defer ours.Shutdown()
	var going sync.WaitGroup
	defer going.Wait()
	going.Go(func() { far.Run(lookers, done) })
	going.Go(func() { near.Run(1, done) })
	if !cache.WaitForCacheSync(done, seen.HasSynced) {
		return nil
	}
	documented := make(chan struct{})
	going.Go(func() { r.discovery.Run(done, documented) })
	select {
	case <-documented:
	case <-done:
	}
	known()
	<-done
	return nil
}

// changed notes what became of an APIService.
func (a *Aggregator) changed(r *running, obj any, gone bool) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	s, ok := obj.(*v1.APIService)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if gone {
		delete(r.services, s.Name)
	} else {
		r.services[s.Name] = s
	}
	t := a.route(r)
	if route := t.byName[s.Name]; route != nil {
		r.discovery.AddAPIService(s, route.always())
	} else {
		r.discovery.RemoveAPIService(s.Name)
	}
	a.listGroup(r, s.Spec.Group, t)
}

// renewed makes the routes anew, with the new certificate.
func (a *Aggregator) renewed() {
	a.mu.Lock()
	r := a.begun
	a.mu.Unlock()
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := a.route(r)
	for name, route := range t.byName {
		r.discovery.AddAPIService(r.services[name], route.always())
	}
}

// route makes the table of routes anew and puts it in place. The caller holds r's lock.
func (a *Aggregator) route(r *running) *table {
	cert, key := a.o.Certificate.PEM()
	t := newTable(r.services, a.routes.Load(), func(s *v1.APIService) *route {
		if a.own(s.Spec.Group, s.Spec.Version) || s.Spec.Group == "" {
			return nil // stored by an earlier version, or by another server of the same store
		}
		return newRoute(s, a.o, cert, key)
	})
	a.routes.Store(t)
	return t
}

// listGroup keeps a group in the plain list as its APIServices have it. Groups without a route are not ours to list.
func (a *Aggregator) listGroup(r *running, group string, t *table) {
	switch {
	case len(t.groups[group].routed) > 0:
		a.documents.Plain.AddGroup(t.groups[group].described)
		r.listed[group] = true
	case !r.listed[group]:
	case len(t.groups[group].described.Versions) > 0: // what is left of it is this server's
		a.documents.Plain.AddGroup(t.groups[group].described)
		delete(r.listed, group)
	case a.serves(group): // its APIService comes back at once
	default:
		a.documents.Plain.RemoveGroup(group)
		delete(r.listed, group)
	}
}
