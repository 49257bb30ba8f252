// SPDX-License-Identifier: Apache-2.0

package servicenames

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/controllers/loop"
	"github.com/wherryproject/wherry/internal/names"
	"github.com/wherryproject/wherry/internal/names/objects"
)

// own is the name in the queue that stands for service kube-dns itself; those of objects have a slash.
const own = "own"

// Controller sends changes to a resolver.
type Controller struct {
	loop                   *loop.Loop
	services, slices, pods cache.SharedIndexInformer
	nodes                  cache.SharedIndexInformer
	send                   func(current func() names.Change)
	ensure                 func(context.Context) error
}

// New makes the controller. send sends the resolver one change; ensure sees to service kube-dns. The caller starts the
// factory's informers.
func New(factory informers.SharedInformerFactory, log *slog.Logger, send func(func() names.Change),
	ensure func(context.Context) error) *Controller {
	c := &Controller{send: send, ensure: ensure, services: factory.Core().V1().Services().Informer(),
		slices: factory.Discovery().V1().EndpointSlices().Informer(), pods: factory.Core().V1().Pods().Informer(),
		nodes: factory.Core().V1().Nodes().Informer()}
	c.loop = loop.New("servicenames", log, c.sync)
	c.loop.Watch(c.services, c.changed("service"))
	c.loop.Watch(c.slices, c.changed("slice"))
	c.loop.Watch(c.pods, c.changed("pod"))
	c.loop.Watch(c.nodes, c.changed("node"))
	return c
}

// Run works until ctx is done. It is called once.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Known is closed when all objects are known.
func (c *Controller) Known(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), c.services.HasSynced, c.slices.HasSynced, c.pods.HasSynced,
		c.nodes.HasSynced)
}

// changed puts the object's name into the queue, if names have to do with what has changed of it.
func (c *Controller) changed(kind string) func(any) {
	return func(obj any) {
		key, err := cache.MetaNamespaceKeyFunc(obj)
		if err != nil {
			return // it has no name, and so nobody asks for it
		}
		c.loop.Add(kind + "/" + key)
		if (kind == "service" || kind == "slice") && key == names.ServiceNamespace+"/"+names.ServiceName {
			c.loop.Add(own)
		}
	}
}

func (c *Controller) sync(ctx context.Context, key string) error {
	if key == own {
		if err := c.ensure(ctx); !errors.Is(err, ErrForeign) {
			return err
		}
		return nil
	}
	kind, key, _ := strings.Cut(key, "/")
	store := map[string]cache.SharedIndexInformer{"service": c.services, "slice": c.slices,
		"pod": c.pods, "node": c.nodes}[kind].GetStore()
	c.send(func() names.Change {
		obj, there, err := store.GetByKey(key)
		if err != nil || !there {
			namespace, name, within := strings.Cut(key, "/")
			if !within {
				namespace, name = "", key
			}
			return gone(kind, namespace, name)
		}
		return change(obj)
	})
	return nil
}

// All is the world as it is known.
func (c *Controller) All() (all []names.Change) {
	for _, i := range []cache.SharedIndexInformer{c.services, c.slices, c.pods, c.nodes} {
		for _, obj := range i.GetStore().List() {
			all = append(all, change(obj))
		}
	}
	return all
}

func change(obj any) (c names.Change) {
	switch o := obj.(type) {
	case *corev1.Service:
		s := objects.Service(o)
		c.Service = &s
	case *discoveryv1.EndpointSlice:
		s := objects.Slice(o)
		c.Slice = &s
	case *corev1.Pod:
		p := objects.Pod(o)
		c.Pod = &p
	case *corev1.Node:
		n := objects.Node(o)
		c.Node = &n
	}
	return c
}

func gone(kind, namespace, name string) names.Change {
	c := names.Change{Gone: true}
	switch kind {
	case "service":
		c.Service = &names.Service{Namespace: namespace, Name: name}
	case "slice":
		c.Slice = &names.Slice{Namespace: namespace, Name: name}
	case "pod":
		c.Pod = &names.Pod{Namespace: namespace, Name: name}
	case "node":
		c.Node = &names.Node{Name: name}
	}
	return c
}
