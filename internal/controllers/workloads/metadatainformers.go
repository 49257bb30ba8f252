// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/controller-manager/pkg/informerfactory"
)

// metadataInformers are the garbage collector's: one for each kind that it watches, of metadata alone. They end with
// the collector, or when a kind is no longer served.
type metadataInformers struct {
	client metadata.Interface
	added  func(schema.GroupVersionResource, cache.SharedIndexInformer) // before it starts

	mu  sync.Mutex
	all map[schema.GroupVersionResource]*metadataInformer
}

var _ informerfactory.InformerFactory = &metadataInformers{}

type metadataInformer struct {
	informers.GenericInformer
	started bool
	stop    context.CancelFunc // once it is started
}

// ForResource implements informerfactory.InformerFactory.
func (i *metadataInformers) ForResource(kind schema.GroupVersionResource) (informers.GenericInformer, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if have := i.all[kind]; have != nil {
		return have, nil
	}
	made := metadatainformer.NewFilteredMetadataInformer(i.client, kind, metav1.NamespaceAll, 0, cache.Indexers{}, nil)
	if err := made.Informer().SetTransform(onlyOwnership); err != nil {
		return nil, err
	}
	i.added(kind, made.Informer())
	i.all[kind] = &metadataInformer{GenericInformer: made}
	return made, nil
}

// onlyOwnership drops what the collector does not look at: it reads an object anew before it acts on it.
func onlyOwnership(obj any) (any, error) {
	o, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	m := o.ObjectMeta
	return &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		DeletionTimestamp: m.DeletionTimestamp, Finalizers: m.Finalizers, OwnerReferences: m.OwnerReferences,
	}}, nil
}

// Start implements informerfactory.InformerFactory.
func (i *metadataInformers) Start(end <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, one := range i.all {
		if one.started {
			continue
		}
		ctx, cancel := context.WithCancel(wait.ContextForChannel(end))
		one.started, one.stop = true, cancel
		go one.Informer().RunWithContext(ctx)
	}
}

// keep ends the informers of all kinds but these.
func (i *metadataInformers) keep(kinds map[schema.GroupVersionResource]bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for kind, one := range i.all {
		if kinds[kind] {
			continue
		}
		if one.stop != nil {
			one.stop()
		}
		delete(i.all, kind)
	}
}

// synced waits until all are filled.
func (i *metadataInformers) synced(ctx context.Context) {
	i.mu.Lock()
	var all []cache.DoneChecker
	for _, one := range i.all {
		if one.started {
			all = append(all, one.Informer().HasSyncedChecker())
		}
	}
	i.mu.Unlock()
	cache.WaitFor(ctx, "", all...)
}
