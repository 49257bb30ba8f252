// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"

	"github.com/wherryproject/wherry/internal/api/firsts"
	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// garbageCollector deletes, or sets free, what deleted objects owned. Any object can own any other, so that it watches
// all kinds; it watches those that have objects, and only their metadata.
func garbageCollector() ondemand.Controller {
	return ondemand.Controller{
		Name:   "generic-garbage-collector",
		Starts: []ondemand.Start{{If: firsts.Collectable, There: anyCollectable}},
		Code:   code + "garbagecollector",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			objects, err := metadata.NewForConfig(k.Config)
			if err != nil {
				return nil, err
			}
			watched := newOwnedKinds(k, objects)
			mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(k.Client.Discovery()))
			started := make(chan struct{})
			close(started) // its informers are its own
			graph := garbagecollector.NewDependencyGraphBuilder(ctx, objects, mapper,
				garbagecollector.DefaultIgnoredResources(), watched, started)
			c, err := garbagecollector.NewComposedGarbageCollector(ctx, k.Client, objects, mapper, graph)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) { watched.run(ctx, c) }, nil
		},
	}
}
