// SPDX-License-Identifier: Apache-2.0

package netpolicy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/controllers/loop"
)

// object names one that has changed. A namespace has no name, and a policy is marked.
type object struct {
	policy          bool
	namespace, name string
}

func (o object) compare(other object) int {
	return cmp.Or(cmp.Compare(o.namespace, other.namespace), cmp.Compare(o.name, other.name))
}

type listers struct {
	policies   networkinglisters.NetworkPolicyLister
	pods       corelisters.PodLister
	namespaces corelisters.NamespaceLister
}

// follow begins to follow policies, pods and namespaces, until life ends, and returns when all there are are known.
func (e *Enforcer) follow(ctx, life context.Context) error {
	core := e.config.Informers.Core().V1()
	policies := e.config.Informers.Networking().V1().NetworkPolicies()
	e.objects = listers{policies.Lister(), core.Pods().Lister(), core.Namespaces().Lister()}
	marks := cache.ResourceEventHandlerFuncs{
		AddFunc:    e.mark,
		UpdateFunc: func(_, obj any) { e.mark(obj) },
		DeleteFunc: func(obj any) { e.mark(loop.Gone(obj)) },
	}
	err := errors.Join(e.handle("policies", policies.Informer(), marks),
		e.handle("pods", core.Pods().Informer(), marks), e.handle("namespaces", core.Namespaces().Informer(), marks))
	if err == nil {
		err = e.await(ctx, life)
	}
	if err != nil {
		return err
	}
	e.started = true
	if e.changed, e.failed, err = e.config.Host.Watch(life); err != nil {
		e.config.Log.Warn("rules of network policies that somebody removes are not made again by themselves", "err",
			err)
	}
	return nil
}

// followFirst follows policies alone: most clusters have none, and then nobody else's pods are of interest.
func (e *Enforcer) followFirst(ctx, life context.Context) (bool, error) {
	policies := e.config.Informers.Networking().V1().NetworkPolicies()
	err := e.handle("first", policies.Informer(), cache.ResourceEventHandlerFuncs{AddFunc: func(any) { e.tellFirst() }})
	if err == nil {
		err = e.await(ctx, life)
	}
	if err != nil {
		return false, err
	}
	there, err := policies.Lister().List(labels.Everything())
	return len(there) > 0, err
}

// handle hands objects on from now on, once for each name.
func (e *Enforcer) handle(name string, from cache.SharedIndexInformer, to cache.ResourceEventHandler) error {
	if e.synced[name] != nil {
		return nil
	}
	r, err := from.AddEventHandler(to)
	if err != nil {
		return fmt.Errorf("network policies: %w", err)
	}
	e.synced[name] = r.HasSynced
	return nil
}

// await returns when all there is has been handed on.
func (e *Enforcer) await(ctx, life context.Context) error {
	e.config.Informers.Start(life.Done())
	if !cache.WaitForCacheSync(ctx.Done(), slices.Collect(maps.Values(e.synced))...) {
		return fmt.Errorf("network policies: %w", ctx.Err())
	}
	return nil
}

// mark notes that an object has changed.
func (e *Enforcer) mark(obj any) {
	var o object
	switch x := obj.(type) {
	case *networkingv1.NetworkPolicy:
		o = object{true, x.Namespace, x.Name}
	case *corev1.Pod:
		o = object{false, x.Namespace, x.Name}
	case *corev1.Namespace:
		o = object{false, x.Name, ""}
	default:
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dirty[o] = true
	select {
	case e.wake <- struct{}{}:
	default: // one waits to be taken, and will be after this
	}
}

// takeIn applies to the world what has changed, and notes what policies are not understood.
func (e *Enforcer) takeIn() {
	e.mu.Lock()
	dirty := e.dirty
	e.dirty = map[object]bool{}
	e.mu.Unlock()
	e.world.SetNames(e.config.Names())
	for o := range dirty {
		if err := e.take(o); err != nil {
			e.refused[o] = err
		} else {
			delete(e.refused, o)
		}
	}
}

func (e *Enforcer) take(o object) error {
	switch {
	case o.policy:
		p, err := e.objects.policies.NetworkPolicies(o.namespace).Get(o.name)
		if apierrors.IsNotFound(err) {
			e.world.DropPolicy(o.namespace, o.name)
			return nil
		} else if err != nil {
			return err
		}
		return e.world.SetPolicy(p)
	case o.name == "":
		n, err := e.objects.namespaces.Get(o.namespace)
		if apierrors.IsNotFound(err) {
			e.world.DropNamespace(o.namespace)
			return nil
		} else if err != nil {
			return err
		}
		e.world.SetNamespace(n.Name, n.Labels)
	default:
		p, err := e.objects.pods.Pods(o.namespace).Get(o.name)
		if apierrors.IsNotFound(err) {
			e.world.DropPod(o.namespace, o.name)
			return nil
		} else if err != nil {
			return err
		}
		e.world.SetPod(p)
	}
	return nil
}
