// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto"
	"crypto/x509"
	"log/slog"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"

	"github.com/wherryproject/wherry/internal/controllers/loop"
)

// Longest is how long a certificate lives at most, as Kubernetes has it.
const Longest = 365 * 24 * time.Hour

// Authority signs certificates. It is safe for concurrent use.
type Authority interface {
	// Sign returns the chain in PEM form.
	Sign(template *x509.Certificate, key crypto.PublicKey) ([]byte, error)
}

// Controller answers requests.
type Controller struct {
	client   kubernetes.Interface
	log      *slog.Logger
	loop     *loop.Loop
	requests certificateslisters.CertificateSigningRequestLister
	ca       Authority
	longest  time.Duration
}

// New makes the controller; no certificate lives longer than longest. The caller starts the factory's informers.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, log *slog.Logger, ca Authority,
	longest time.Duration) *Controller {
	c := &Controller{client: client, log: log, ca: ca, longest: longest}
	c.loop = loop.New("certificates", log, c.sync)
	requests := factory.Certificates().V1().CertificateSigningRequests()
	c.requests = requests.Lister()
	c.loop.Watch(requests.Informer(),
		func(obj any) { c.loop.Add(obj.(*certificatesv1.CertificateSigningRequest).Name) })
	return c
}

// Run works until ctx is done. It is called once.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

func (c *Controller) sync(ctx context.Context, name string) error {
	r, err := c.requests.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	now := time.Now()
	switch d := Decide(r, now); d.Action {
	case Approve:
		err = c.approve(ctx, r.DeepCopy(), d.Why)
	case Sign:
		err = c.sign(ctx, r.DeepCopy(), now)
	case Remove:
		c.log.Info("removing certificate request", "request", name, "why", d.Why)
		err = c.client.CertificatesV1().CertificateSigningRequests().Delete(ctx, name,
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(r.UID))})
	default:
		return loop.Later{After: max(time.Second, d.Again.Sub(now)), Why: "keeping the request for a while"}
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it changed; we shall hear of it
	}
	return err
}

func (c *Controller) approve(ctx context.Context, r *certificatesv1.CertificateSigningRequest, why string) error {
	r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved", Message: why,
		LastUpdateTime: metav1.Now(),
	})
	_, err := c.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, r.Name, r,
		metav1.UpdateOptions{})
	if err == nil {
		c.log.Info("approving certificate request", "request", r.Name, "user", r.Spec.Username, "why", why)
	}
	return err
}

func (c *Controller) sign(ctx context.Context, r *certificatesv1.CertificateSigningRequest, now time.Time) error {
	template, csr, err := Template(r, now, c.longest)
	if err != nil {
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerValidationFailure",
			Message: err.Error(), LastUpdateTime: metav1.Now(),
		})
	} else if r.Status.Certificate, err = c.ca.Sign(template, csr.PublicKey); err != nil {
		return err
	}
	_, err = c.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, r, metav1.UpdateOptions{})
	if err == nil && len(r.Status.Certificate) > 0 {
		c.log.Info("signed certificate", "request", r.Name, "user", r.Spec.Username, "subject",
			template.Subject.String(), "ends", template.NotAfter)
	}
	return err
}
