// SPDX-License-Identifier: Apache-2.0

package podcertificates

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"

	"github.com/wherryproject/wherry/internal/controllers/loop"
	"github.com/wherryproject/wherry/internal/controllers/ondemand"
	"github.com/wherryproject/wherry/internal/pki"
)

const (
	// Name is the controller's.
	Name = "pod-certificate-controller"
	// Bundle is the ClusterTrustBundle with the authority's certificate.
	Bundle = "wherry.dev:pod:ca"
	// authority is what the authority is called.
	authority = "wherry-pods-ca"
)

// Controller signs and removes requests. folder is where its authority is kept; domain that of the cluster's names.
func Controller(folder, domain string) ondemand.Controller {
	return ondemand.Controller{
		Name: Name, Code: "github.com/wherryproject/wherry/internal/controllers/podcertificates",
		Starts: []ondemand.Start{{Kind: certificatesv1.SchemeGroupVersion.WithResource("podcertificaterequests")}},
		New: func(_ context.Context, k *ondemand.Kit) (func(context.Context), error) {
			requests := k.Informers.Certificates().V1().PodCertificateRequests()
			c := &controller{client: k.Client, requests: requests.Lister(), folder: folder, domain: domain}
			c.loop = loop.New(Name, k.Log, c.sync)
			c.loop.Watch(requests.Informer(), func(obj any) {
				r := obj.(*certificatesv1.PodCertificateRequest)
				c.loop.Add(r.Namespace + "/" + r.Name)
			})
			return c.run, nil
		},
	}
}

type controller struct {
	client         kubernetes.Interface
	loop           *loop.Loop
	requests       certificateslisters.PodCertificateRequestLister
	folder, domain string
	ca             *pki.CA // nil: nothing was signed yet
}

func (c *controller) run(ctx context.Context) {
	if err := c.loop.Run(ctx); err != nil && ctx.Err() == nil {
		c.loop.Log.Error("controller ended", "controller", Name, "err", err)
	}
}

func (c *controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	r, err := c.requests.PodCertificateRequests(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	now := time.Now()
	switch do, again := Decide(r, now); do {
	case Sign:
		err = c.sign(ctx, r.DeepCopy(), now)
	case Deny:
		err = c.answer(ctx, r.DeepCopy(), NoSigner(r.Spec.SignerName), now)
	case Remove:
		err = c.client.CertificatesV1().PodCertificateRequests(namespace).Delete(ctx, name,
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(r.UID))})
	case Wait:
		return loop.Later{After: max(time.Second, again.Sub(now)), Why: "keeping the request for a while"}
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it changed; we shall hear of it
	}
	return err
}

func (c *controller) sign(ctx context.Context, r *certificatesv1.PodCertificateRequest, now time.Time) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	w, err := c.look(ctx, r)
	if err != nil {
		return err
	}
	template, key, refusal := Template(r, w, now)
	if refusal != nil {
		return c.answer(ctx, r, refusal, now)
	}
	chain, err := c.ca.Sign(template, key)
	if err != nil {
		return err
	}
	r.Status = issued(chain, template)
	return c.answer(ctx, r, nil, now)
}

// answer writes what came of a request: a refusal, or nil for the certificate that is in its status.
func (c *controller) answer(ctx context.Context, r *certificatesv1.PodCertificateRequest, refusal *Refusal,
	now time.Time) error {
	condition := metav1.Condition{Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
		Type: certificatesv1.PodCertificateRequestConditionTypeIssued, Reason: "Issued",
		Message: "the pod is as the request says"}
	if refusal != nil {
		condition.Type, condition.Reason, condition.Message = refusal.Type, refusal.Reason, refusal.Message
	}
	r.Status.Conditions = []metav1.Condition{condition}
	_, err := c.client.CertificatesV1().PodCertificateRequests(r.Namespace).UpdateStatus(ctx, r, metav1.UpdateOptions{})
	if err == nil {
		c.loop.Log.Info("answered a pod's request for a certificate", "request", r.Namespace+"/"+r.Name, "pod",
			r.Spec.PodName, "answer", condition.Type, "why", condition.Message)
	}
	return err
}

// issued is the status of a request that was signed.
func issued(chain []byte, cert *x509.Certificate) certificatesv1.PodCertificateRequestStatus {
	at := func(t time.Time) *metav1.Time { m := metav1.NewTime(t); return &m }
	return certificatesv1.PodCertificateRequestStatus{CertificateChain: string(chain), NotBefore: at(cert.NotBefore),
		NotAfter: at(cert.NotAfter), BeginRefreshAt: at(RenewAt(cert.NotBefore, cert.NotAfter))}
}

// look fetches what the API knows of a pod.
func (c *controller) look(ctx context.Context, r *certificatesv1.PodCertificateRequest) (World, error) {
	w := World{Domain: c.domain}
	pod, err := c.client.CoreV1().Pods(r.Namespace).Get(ctx, r.Spec.PodName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	w.Pod = pod
	services, err := c.client.CoreV1().Services(r.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return w, err
	}
	for i := range services.Items {
		w.Services = append(w.Services, &services.Items[i])
	}
	return w, nil
}

// open reads the authority or makes it, and says in a bundle whom to trust.
func (c *controller) open(ctx context.Context) error {
	if c.ca != nil {
		return nil
	}
	ca, err := pki.LoadOrCreate(c.folder, authority)
	if err != nil {
		return fmt.Errorf("authority of pods' certificates: %w", err)
	}
	if err := c.publish(ctx, string(ca.CertPEM())); err != nil {
		return fmt.Errorf("ClusterTrustBundle %s: %w", Bundle, err)
	}
	c.ca = ca
	return nil
}

func (c *controller) publish(ctx context.Context, pem string) error {
	bundles := c.client.CertificatesV1().ClusterTrustBundles()
	have, err := bundles.Get(ctx, Bundle, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = bundles.Create(ctx, &certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: Bundle},
			Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: Signer, TrustBundle: pem}}, metav1.CreateOptions{})
		return err
	}
	if err != nil || have.Spec.TrustBundle == pem {
		return err
	}
	have.Spec.TrustBundle = pem
	_, err = bundles.Update(ctx, have, metav1.UpdateOptions{})
	return err
}
