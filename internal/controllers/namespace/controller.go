// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/wherryproject/wherry/internal/controllers/loop"
)

// podsMissed is when a namespace that waits for its pods is looked at again though nothing was heard of them.
const podsMissed = 30 * time.Second

// Controller finishes the deletion of namespaces.
type Controller struct {
	client     kubernetes.Interface
	objects    metadata.Interface
	loop       *loop.Loop
	namespaces corelisters.NamespaceLister
}

// New makes the controller; objects is a client for all kinds. The caller starts the factory's informers.
func New(client kubernetes.Interface, objects metadata.Interface, factory informers.SharedInformerFactory,
	log *slog.Logger) *Controller {
	c := &Controller{client: client, objects: objects}
	c.loop = loop.New("namespace", log, c.sync)
	c.loop.Workers = 4
	namespaces := factory.Core().V1().Namespaces()
	c.namespaces = namespaces.Lister()
	c.loop.Watch(namespaces.Informer(), func(obj any) {
		if ns := obj.(*corev1.Namespace); ns.DeletionTimestamp != nil {
			c.loop.Add(ns.Name)
		}
	})
	// The last pod's end is what most namespaces wait for.
	c.loop.Watch(factory.Core().V1().Pods().Informer(), func(obj any) {
		pod := obj.(*corev1.Pod)
		if ns, err := c.namespaces.Get(pod.Namespace); err == nil && ns.DeletionTimestamp != nil {
			c.loop.Add(pod.Namespace)
		}
	})
	return c
}

// Run works until ctx is done. It is called once.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

func (c *Controller) sync(ctx context.Context, name string) error {
	ns, err := c.namespaces.Get(name)
	if apierrors.IsNotFound(err) || (err == nil && ns.DeletionTimestamp == nil) {
		return nil
	} else if err != nil {
		return err
	}
	if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return nil
	}
	found := c.empty(ctx, name)
	if ctx.Err() != nil {
		return nil
	}
	ns, err = c.publish(ctx, ns, found)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it changed; we shall hear of it
	} else if err != nil {
		return err
	}
	if err := found.problem(); err != nil {
		return err
	}
	if !found.empty() {
		later := loop.Later{Why: "namespace " + name + " still holds " + found.remaining()}
		if found.onlyPods() {
			later.After = podsMissed
		}
		return later // other content that stays has finalizers, of whose end nothing notifies
	}
	return c.finalize(ctx, ns)
}

// publish writes the conditions, if they say anything new.
func (c *Controller) publish(ctx context.Context, ns *corev1.Namespace, found *content) (*corev1.Namespace, error) {
	updated := ns.DeepCopy()
	updated.Status.Phase = corev1.NamespaceTerminating
	if !setConditions(&updated.Status, found.conditions(), metav1.Now()) &&
		ns.Status.Phase == corev1.NamespaceTerminating {
		return ns, nil
	}
	return c.client.CoreV1().Namespaces().UpdateStatus(ctx, updated, metav1.UpdateOptions{})
}

// finalize takes our finalizer away; the API server deletes a namespace that has none left.
func (c *Controller) finalize(ctx context.Context, ns *corev1.Namespace) error {
	updated := ns.DeepCopy()
	updated.Spec.Finalizers = slices.DeleteFunc(updated.Spec.Finalizers,
		func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	_, err := c.client.CoreV1().Namespaces().Finalize(ctx, updated, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
