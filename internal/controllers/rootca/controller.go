// SPDX-License-Identifier: Apache-2.0

package rootca

import (
	"context"
	"log/slog"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/wherryproject/wherry/internal/controllers/loop"
)

const (
	// Name is the config map's name, Key the entry that holds the certificate.
	Name = "kube-root-ca.crt"
	Key  = "ca.crt"

	descriptionKey = "kubernetes.io/description"
	description    = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. " +
		"No other usage is guaranteed across distributions of Kubernetes clusters."
)

// Controller keeps the maps.
type Controller struct {
	client     kubernetes.Interface
	loop       *loop.Loop
	own        informers.SharedInformerFactory // only the maps that matter here
	namespaces corelisters.NamespaceLister
	maps       corelisters.ConfigMapLister
	data       map[string]string
}

// New makes the controller; ca is the certificate in PEM. The caller starts the factory's informers.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, log *slog.Logger,
	ca []byte) *Controller {
	c := &Controller{client: client, own: loop.OnlyNamed(client, Name), data: map[string]string{Key: string(ca)}}
	c.loop = loop.New("rootca", log, c.sync)
	namespaces, configMaps := factory.Core().V1().Namespaces(), c.own.Core().V1().ConfigMaps()
	c.namespaces, c.maps = namespaces.Lister(), configMaps.Lister()
	c.loop.Watch(namespaces.Informer(), func(obj any) { c.loop.Add(obj.(*corev1.Namespace).Name) })
	c.loop.Watch(configMaps.Informer(), func(obj any) { c.loop.Add(obj.(*corev1.ConfigMap).Namespace) })
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
	have, err := c.maps.ConfigMaps(namespace).Get(Name)
	if apierrors.IsNotFound(err) {
		return c.create(ctx, namespace)
	} else if err != nil {
		return err
	}
	if maps.Equal(have.Data, c.data) && have.Annotations[descriptionKey] != "" {
		return nil
	}
	restored := have.DeepCopy()
	restored.Data = c.data
	if restored.Annotations == nil {
		restored.Annotations = map[string]string{}
	}
	restored.Annotations[descriptionKey] = description
	_, err = c.client.CoreV1().ConfigMaps(namespace).Update(ctx, restored, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it changed again; we shall hear of it
	}
	return err
}

func (c *Controller) create(ctx context.Context, namespace string) error {
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: namespace,
			Annotations: map[string]string{descriptionKey: description}},
		Data: c.data,
	}
	_, err := c.client.CoreV1().ConfigMaps(namespace).Create(ctx, configMap, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}
