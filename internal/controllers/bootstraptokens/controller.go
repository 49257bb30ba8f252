// SPDX-License-Identifier: Apache-2.0

package bootstraptokens

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/wherryproject/wherry/internal/controllers/loop"
)

// Controller removes expired tokens.
type Controller struct {
	client  kubernetes.Interface
	log     *slog.Logger
	loop    *loop.Loop
	own     informers.SharedInformerFactory // bootstrap tokens only: no other Secret is held in memory
	secrets corelisters.SecretNamespaceLister
}

// New makes the controller.
func New(client kubernetes.Interface, log *slog.Logger) *Controller {
	own := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(metav1.NamespaceSystem),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("type",
				string(bootstrapapi.SecretTypeBootstrapToken)).String()
		}))
	c := &Controller{client: client, log: log, own: own}
	c.loop = loop.New("bootstraptokens", log, c.sync)
	secrets := own.Core().V1().Secrets()
	c.secrets = secrets.Lister().Secrets(metav1.NamespaceSystem)
	c.loop.Watch(secrets.Informer(), func(obj any) { c.loop.Add(obj.(*corev1.Secret).Name) })
	return c
}

// Run works until ctx is done. It is called once.
func (c *Controller) Run(ctx context.Context) error {
	c.own.Start(ctx.Done())
	defer c.own.Shutdown()
	return c.loop.Run(ctx)
}

func (c *Controller) sync(ctx context.Context, name string) error {
	s, err := c.secrets.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	end, ok := expiration(s)
	if !ok {
		return nil
	}
	if left := time.Until(end); left > 0 {
		return loop.Later{After: left, Why: "the token is still valid"}
	}
	err = c.client.CoreV1().Secrets(s.Namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it changed; we shall hear of it
	}
	if err == nil {
		c.log.Info("removing expired bootstrap token", "secret", name)
	}
	return err
}

// expiration is when a token ends; not every one does.
func expiration(s *corev1.Secret) (time.Time, bool) {
	end, err := time.Parse(time.RFC3339, string(s.Data[bootstrapapi.BootstrapTokenExpirationKey]))
	return end, err == nil
}
