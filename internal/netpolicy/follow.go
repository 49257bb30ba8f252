// SPDX-License-Identifier: Apache-2.0

package netpolicy

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	e.started = true
	core := e.config.Informers.Core().V1()
	policies := e.config.Informers.Networking().V1().NetworkPolicies()
	e.objects = listers{policies.Lister(), core.Pods().Lister(), core.Namespaces().Lister()}
	var synced []cache.InformerSynced
	for _, i := range []cache.SharedIndexInformer{policies.Informer(), core.Pods().Informer(),
		core.Namespaces().Informer()} {
		r, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    e.mark,
			UpdateFunc: func(_, obj any) { e.mark(obj) },
			DeleteFunc: func(obj any) { e.mark(loop.Gone(obj)) },
		})
		if err != nil {
			return fmt.Errorf("network policies: %w", err)
		}
		synced = append(synced, r.HasSynced)
	}
	e.config.Informers.Start(life.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	var err error
	if e.changed, e.failed, err = e.config.Host.Watch(life); err != nil {
		e.config.Log.Warn("rules of network policies that somebody removes are not made again by themselves", "err",
			err)
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

// takeIn tells the world what has changed, and notes what policies are not understood.
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
