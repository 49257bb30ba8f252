// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"

	"github.com/wherryproject/wherry/internal/api/firsts"
	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

const (
	collectors = 4
	// gather is how long after a new kind the collector is notified, so that the kinds of one kubectl apply come
	// together.
	gather = 300 * time.Millisecond
	// fillTime is the longest that the collector may take to fill a new kind's informer before it gets further
	// ones.
	fillTime = 10 * time.Second
	// never is a period of the collector's own questions for new kinds: it is notified.
	never = 1000 * time.Hour
	// askAgain is the pause before a kind that has an object and is not served yet, as custom resources may be for a
	// moment, is looked for again; it doubles each time, tries times.
	askAgain = 250 * time.Millisecond
	tries    = 6
)

// ownedKinds are the kinds that the garbage collector watches: those that have, or had, an object. A kind without any
// neither owns nor is owned, and most kinds of a server have none.
type ownedKinds struct {
	discovery.ServerResourcesInterface
	*metadataInformers
	kit     *ondemand.Kit
	looking ondemand.Looking
	changed chan struct{} // has an element when a kind has its first object, or what is served has changed

	mu      sync.Mutex
	used    map[schema.GroupResource]bool // have an object, or had one
	watched map[schema.GroupVersionResource]bool
	lost    map[schema.GroupResource]int // have an object, and were not served when asked so many times
}

func newOwnedKinds(k *ondemand.Kit, objects metadata.Interface) *ownedKinds {
	o := &ownedKinds{
		ServerResourcesInterface: k.Client.Discovery(), kit: k,
		looking: ondemand.Looking{Client: k.Client, Metadata: objects}, changed: make(chan struct{}, 1),
		used: map[schema.GroupResource]bool{}, lost: map[schema.GroupResource]int{},
	}
	o.metadataInformers = &metadataInformers{client: objects, added: o.added,
		all: map[schema.GroupVersionResource]*metadataInformer{}}
	return o
}

func (o *ownedKinds) change() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// added looks at definitions of custom resources: with one, a kind comes or goes.
func (o *ownedKinds) added(kind schema.GroupVersionResource, informer cache.SharedIndexInformer) {
	if kind.Group != "apiextensions.k8s.io" || kind.Resource != "customresourcedefinitions" {
		return
	}
	// An error says that the informer has stopped, and this one has not started.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { o.change() }})
}

func (o *ownedKinds) isNew(kind schema.GroupResource, _ runtime.Object) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ignored := garbagecollector.DefaultIgnoredResources()[kind]
	return !ignored && !o.used[kind]
}

func (o *ownedKinds) use(kind schema.GroupResource) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used[kind] = true
}

// run runs the collector, and notifies it of kinds, until ctx is done.
func (o *ownedKinds) run(ctx context.Context, c *garbagecollector.GarbageCollector) {
	defer o.kit.Firsts.Await(firsts.Wait{If: o.isNew, Keep: true, Then: func(kind schema.GroupResource) {
		o.use(kind)
		o.change()
	}})()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { c.Run(ctx, collectors, fillTime) })
	for ctx.Err() == nil {
		round, end := context.WithCancel(ctx)
		var syncing sync.WaitGroup
		syncing.Go(func() { c.Sync(round, o, never) })
		o.await(ctx)
		end()
		syncing.Wait()
	}
}

// await returns when the collector is to ask for the kinds again, and has done with having asked before.
func (o *ownedKinds) await(ctx context.Context) {
	retry := time.NewTimer(o.retryIn())
	defer retry.Stop()
	select {
	case <-ctx.Done():
		return
	case <-o.changed:
	case <-retry.C:
	}
	filling, done := context.WithTimeout(ctx, fillTime)
	o.synced(filling)
	done()
	gathering := time.NewTimer(gather)
	defer gathering.Stop()
	select {
	case <-ctx.Done():
	case <-gathering.C:
	}
}

// ServerPreferredResources implements discovery.ServerResourcesInterface: it is how the collector asks what to watch.
func (o *ownedKinds) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	lists, err := o.ServerResourcesInterface.ServerPreferredResources()
	ctx, cancel := context.WithTimeout(context.Background(), fillTime)
	defer cancel()
	served, watched := map[schema.GroupResource]bool{}, map[schema.GroupVersionResource]bool{}
	for _, kind := range collectable(lists) {
		served[kind.GroupResource()] = true
		if o.inUse(ctx, kind) {
			watched[kind] = true
		}
	}
	o.mu.Lock()
	for kind := range o.used {
		if !served[kind] {
			o.lost[kind]++
		} else {
			delete(o.lost, kind)
		}
		if o.lost[kind] > tries { // its definition is gone
			delete(o.lost, kind)
			delete(o.used, kind)
		}
	}
	o.watched = watched
	o.mu.Unlock()
	if err == nil { // else some groups could not be asked, and the collector goes on watching what it watches of them
		o.keep(watched)
	}
	return only(lists, watched), err
}

// retryIn is how long it takes until the kinds are to be asked for again though nothing has changed.
func (o *ownedKinds) retryIn() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lost) == 0 {
		return never
	}
	times := slices.Min(slices.Collect(maps.Values(o.lost)))
	return askAgain << min(times, tries)
}

// inUse reports whether a kind has, or had, an object.
func (o *ownedKinds) inUse(ctx context.Context, kind schema.GroupVersionResource) bool {
	if !o.isNew(kind.GroupResource(), nil) {
		return true
	}
	there, err := o.looking.Any(ctx, kind)
	if err != nil {
		o.kit.Log.Warn("kind cannot be listed: garbage in it stays", "kind", kind.GroupResource().String(), "err", err)
	}
	if there {
		o.use(kind.GroupResource())
	}
	return there
}

// collectable are the kinds that can be watched and deleted.
func collectable(lists []*metav1.APIResourceList) (kinds []schema.GroupVersionResource) {
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"delete", "list", "watch"}},
		lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // no kind of ours is called so
		}
		for i := range list.APIResources {
			kind := gv.WithResource(list.APIResources[i].Name)
			if _, ignored := garbagecollector.DefaultIgnoredResources()[kind.GroupResource()]; !ignored {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

// only is what is left of the lists of kinds.
func only(lists []*metav1.APIResourceList, kinds map[schema.GroupVersionResource]bool) []*metav1.APIResourceList {
	return discovery.FilteredBy(discovery.ResourcePredicateFunc(func(version string, r *metav1.APIResource) bool {
		gv, err := schema.ParseGroupVersion(version)
		return err == nil && kinds[gv.WithResource(r.Name)]
	}), lists)
}

// page is how many objects are looked at at once.
const page = 500

// anyCollectable looks through all kinds for something that the collector is needed for.
func anyCollectable(ctx context.Context, l ondemand.Looking) (bool, error) {
	lists, err := l.Client.Discovery().ServerPreferredResources()
	errs := []error{err}
	for _, kind := range collectable(lists) {
		found, err := collectableIn(ctx, l, kind)
		if found {
			return true, nil
		}
		errs = append(errs, err)
	}
	return false, errors.Join(errs...)
}

func collectableIn(ctx context.Context, l ondemand.Looking, kind schema.GroupVersionResource) (bool, error) {
	for next := ""; ; {
		list, err := l.Metadata.Resource(kind).List(ctx, metav1.ListOptions{Limit: page, Continue: next})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if firsts.Collectable(kind.GroupResource(), &list.Items[i]) {
				return true, nil
			}
		}
		if next = list.Continue; next == "" {
			return false, nil
		}
	}
}
