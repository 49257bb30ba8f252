// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/controllers/loop"
)

// Name is the controller's in events.
const Name = "load-balancer"

// all is the one name in the queue: addresses are decided over all services.
const all = "services"

// Controller keeps the status of services.
type Controller struct {
	client   kubernetes.Interface
	pool     *Pool
	loop     *loop.Loop
	services corelisters.ServiceLister
	events   *loop.Recorder
	reported map[string]string // of services without an address, the event that was recorded last
}

// New makes the controller; the caller starts the factory's informers. Without a pool it gives no addresses, and lets
// go of the services that had one when there was a pool.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, pool *Pool,
	log *slog.Logger) *Controller {
	c := &Controller{client: client, pool: pool, reported: map[string]string{},
		events: loop.NewRecorder(client, Name)}
	c.loop = loop.New(Name, log, c.sync)
	services := factory.Core().V1().Services()
	c.services = services.Lister()
	c.loop.Watch(services.Informer(), func(obj any) {
		if s := obj.(*corev1.Service); s.Spec.Type == corev1.ServiceTypeLoadBalancer ||
			len(s.Status.LoadBalancer.Ingress) > 0 || slices.Contains(s.Finalizers, Finalizer) {
			c.loop.Add(all)
		}
	})
	return c
}

// Run works until ctx is done. It is called once.
func (c *Controller) Run(ctx context.Context) error {
	return c.events.Run(ctx, c.loop)
}

func (c *Controller) sync(ctx context.Context, _ string) error {
	list, err := c.services.List(labels.Everything())
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range Released(list, c.pool != nil) {
		errs = append(errs, c.release(ctx, s))
	}
	passing, err := c.assign(ctx, list)
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	if passing != "" {
		return loop.Later{Why: passing}
	}
	return nil
}

// assign gives addresses. What it returns is a problem of which nothing will signal the end.
func (c *Controller) assign(ctx context.Context, list []*corev1.Service) (passing string, err error) {
	if c.pool == nil {
		return "", nil
	}
	reported := map[string]string{}
	var errs []error
	for _, r := range Assign(list, *c.pool) {
		errs = append(errs, c.publish(ctx, r))
		if r.Problem == "" {
			continue
		}
		name := nameOf(r.Service)
		if reported[name] = r.Problem; c.reported[name] != r.Problem {
			c.events.Event(r.Service, corev1.EventTypeWarning, "NoLoadBalancerAddress", r.Problem)
		}
		if r.Passing {
			passing = r.Problem
		}
	}
	c.reported = reported
	return passing, errors.Join(errs...)
}

// publish writes where the service is to be reached, and that it is to wait for us when it is deleted, if the object
// does not say both already.
func (c *Controller) publish(ctx context.Context, r Result) error {
	want, marked := statusOf(r.Addrs), slices.Contains(r.Service.Finalizers, Finalizer)
	same := func(a, b corev1.LoadBalancerIngress) bool {
		return a.IP == b.IP && a.Hostname == b.Hostname && ptr.Equal(a.IPMode, b.IPMode)
	}
	if marked && slices.EqualFunc(want, r.Service.Status.LoadBalancer.Ingress, same) {
		return nil
	}
	s := r.Service.DeepCopy()
	if !marked {
		s.Finalizers = append(s.Finalizers, Finalizer)
	}
	s.Status.LoadBalancer.Ingress = want
	return c.write(ctx, s)
}

// release lets go of a service that wants no address any more. Whoever implements its class may have given it one by
// now.
func (c *Controller) release(ctx context.Context, s *corev1.Service) error {
	s = s.DeepCopy()
	s.Finalizers = slices.DeleteFunc(s.Finalizers, func(f string) bool { return f == Finalizer })
	if s.Spec.LoadBalancerClass == nil || wrote(s, `"f:ingress"`) {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
	return c.write(ctx, s)
}

func (c *Controller) write(ctx context.Context, s *corev1.Service) error {
	_, err := c.client.CoreV1().Services(s.Namespace).UpdateStatus(ctx, s, metav1.UpdateOptions{FieldManager: manager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // its event comes
		return nil
	}
	return err
}

func statusOf(addrs []netip.Addr) (out []corev1.LoadBalancerIngress) {
	for _, a := range addrs {
		out = append(out, corev1.LoadBalancerIngress{IP: a.String(), IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)})
	}
	return out
}
