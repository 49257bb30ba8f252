// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/wherryproject/wherry/internal/controllers/loop"
)

// Name is the account that pods get who name none.
const Name = "default"

// Controller keeps the accounts.
type Controller struct {
	client     kubernetes.Interface
	loop       *loop.Loop
	own        informers.SharedInformerFactory // only the accounts that matter here
	namespaces corelisters.NamespaceLister
	accounts   corelisters.ServiceAccountLister
}

// New makes the controller; the caller starts the factory's informers.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, log *slog.Logger) *Controller {
	c := &Controller{client: client, own: loop.OnlyNamed(client, Name)}
	c.loop = loop.New("serviceaccount", log, c.sync)
	namespaces, accounts := factory.Core().V1().Namespaces(), c.own.Core().V1().ServiceAccounts()
	c.namespaces, c.accounts = namespaces.Lister(), accounts.Lister()
	c.loop.Watch(namespaces.Informer(), func(obj any) { c.loop.Add(obj.(*corev1.Namespace).Name) })
	c.loop.Watch(accounts.Informer(), func(obj any) { c.loop.Add(obj.(*corev1.ServiceAccount).Namespace) })
	return c
}

// Run works until ctx is done. It is called once.
func (c *Controller) Run(ctx context.Context) error {
	c.own.Start(ctx.Done())
	defer c.own.Shutdown()
	return c.loop.Run(ctx)
}

func (c *Controller) sync(ctx context.Context, namespace string) error {
	ns, err := c.namespaces.Get(namespace)
	if apierrors.IsNotFound(err) || (err == nil && ns.Status.Phase == corev1.NamespaceTerminating) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := c.accounts.ServiceAccounts(namespace).Get(Name); !apierrors.IsNotFound(err) {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: namespace}}
	_, err = c.client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}
