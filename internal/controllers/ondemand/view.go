// SPDX-License-Identifier: Apache-2.0

package ondemand

import (
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/autoscaling"
	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/informers/certificates"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/discovery"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/tools/cache"
)

// view is the shared informers as one life of a controller sees them: it takes out, at that life's end, the handlers
// that were put in, which Kubernetes' controllers leave to the end of the process; and a handler that panics ends that
// life. Handlers are not called before the controller is made: informers that others have started would call those of
// one that is half made.
type view struct {
	informers.SharedInformerFactory
	guard *guard
	made  chan struct{} // closed once the controller is made
	over  chan struct{} // closed at the life's end

	mu    sync.Mutex
	taken map[reflect.Type]*viewed
}

func newView(g *guard) *view {
	return &view{SharedInformerFactory: g.manager.config.Informers, guard: g, made: make(chan struct{}),
		over: make(chan struct{}), taken: map[reflect.Type]*viewed{}}
}

// InformerFor implements informers.SharedInformerFactory.
func (v *view) InformerFor(obj runtime.Object, make internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	v.mu.Lock()
	defer v.mu.Unlock()
	kind := reflect.TypeOf(obj)
	if v.taken[kind] == nil {
		v.taken[kind] = &viewed{SharedIndexInformer: v.SharedInformerFactory.InformerFor(obj, make), view: v}
	}
	return v.taken[kind]
}

// Apps implements informers.SharedInformerFactory, as do the others: each of the groups that controllers ask for.
func (v *view) Apps() apps.Interface { return apps.New(v, metav1.NamespaceAll, nil) }

// Autoscaling implements informers.SharedInformerFactory.
func (v *view) Autoscaling() autoscaling.Interface {
	return autoscaling.New(v, metav1.NamespaceAll, nil)
}

// Batch implements informers.SharedInformerFactory.
func (v *view) Batch() batch.Interface { return batch.New(v, metav1.NamespaceAll, nil) }

// Certificates implements informers.SharedInformerFactory.
func (v *view) Certificates() certificates.Interface {
	return certificates.New(v, metav1.NamespaceAll, nil)
}

// Core implements informers.SharedInformerFactory.
func (v *view) Core() core.Interface { return core.New(v, metav1.NamespaceAll, nil) }

// Discovery implements informers.SharedInformerFactory.
func (v *view) Discovery() discovery.Interface { return discovery.New(v, metav1.NamespaceAll, nil) }

// Policy implements informers.SharedInformerFactory.
func (v *view) Policy() policy.Interface { return policy.New(v, metav1.NamespaceAll, nil) }

// Storage implements informers.SharedInformerFactory.
func (v *view) Storage() storage.Interface { return storage.New(v, metav1.NamespaceAll, nil) }

// synced are what is to be waited for until everything that is there has been handed to the controller.
func (v *view) synced() (all []cache.DoneChecker) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, i := range v.taken {
		all = append(all, i.HasSyncedChecker())
		i.mu.Lock()
		for _, r := range i.handlers {
			all = append(all, r.HasSyncedChecker())
		}
		i.mu.Unlock()
	}
	return all
}

// close takes the handlers out. Events that the controller gets meanwhile, its queue refuses.
func (v *view) close() {
	close(v.over)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, i := range v.taken {
		i.mu.Lock()
		for _, r := range i.handlers {
			_ = i.RemoveEventHandler(r) // only of one that is no handler of it
		}
		i.handlers = nil
		i.mu.Unlock()
	}
}

// viewed is a shared informer as a controller sees it.
type viewed struct {
	cache.SharedIndexInformer
	view *view

	mu       sync.Mutex
	handlers []cache.ResourceEventHandlerRegistration
}

// AddEventHandler implements cache.SharedInformer.
func (i *viewed) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (i *viewed) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler,
	period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, cache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (i *viewed) AddEventHandlerWithOptions(h cache.ResourceEventHandler,
	o cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	r, err := i.SharedIndexInformer.AddEventHandlerWithOptions(guarded{h, i.view}, o)
	if err != nil {
		return r, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = append(i.handlers, r)
	return r, nil
}

// AddIndexers implements cache.SharedIndexInformer. Those that are there are of an earlier life.
func (i *viewed) AddIndexers(all cache.Indexers) error {
	have := i.GetIndexer().GetIndexers()
	missing := cache.Indexers{}
	for name, index := range all {
		if have[name] == nil {
			missing[name] = index
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return i.SharedIndexInformer.AddIndexers(missing)
}

// guarded is a handler whose panics are its controller's.
type guarded struct {
	cache.ResourceEventHandler
	view *view
}

// ready waits until the controller is made; false: it never will be.
func (h guarded) ready() bool {
	select {
	case <-h.view.made:
		return true
	case <-h.view.over:
		return false
	}
}

func (h guarded) recover() {
	if cause := recover(); cause != nil {
		h.view.guard.caught(cause, string(debug.Stack()))
	}
}

// OnAdd implements cache.ResourceEventHandler.
func (h guarded) OnAdd(obj any, initial bool) {
	defer h.recover()
	if h.ready() {
		h.ResourceEventHandler.OnAdd(obj, initial)
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (h guarded) OnUpdate(old, obj any) {
	defer h.recover()
	if h.ready() {
		h.ResourceEventHandler.OnUpdate(old, obj)
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (h guarded) OnDelete(obj any) {
	defer h.recover()
	if h.ready() {
		h.ResourceEventHandler.OnDelete(obj)
	}
}
