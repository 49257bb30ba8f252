// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/pki"
)

// ownLifetime is that of the API's own certificates, which are renewed when four fifths of it are over.
const ownLifetime = 30 * 24 * time.Hour

// Keys of the Secret that has the CA.
const (
	keyCert = "ca.crt"
	keyKey  = "ca.key"
)

// Authority is the CA of debugging on this cluster, with the API's own certificates.
type Authority struct {
	ca      *pki.CA
	Serving *pki.Renewing // shown to kube-apiserver
	client  *pki.Renewing // shown to agents
	stored  func(context.Context) (*corev1.Secret, error)
}

// Load takes the CA from a Secret, or makes one where the Secret has none yet; of several that do so at once one wins
// and the others take its. The API serves by the names.
func Load(ctx context.Context, client kubernetes.Interface, namespace, secret string, names []string,
	log *slog.Logger) (*Authority, error) {
	ca, err := load(ctx, client, namespace, secret)
	if err != nil {
		return nil, fmt.Errorf("authority in Secret %s/%s: %w", namespace, secret, err)
	}
	a := &Authority{ca: ca, stored: func(ctx context.Context) (*corev1.Secret, error) {
		return client.CoreV1().Secrets(namespace).Get(ctx, secret, metav1.GetOptions{})
	}}
	a.Serving, err = pki.NewRenewing("API of debugging", log, func() ([]byte, []byte, error) {
		return ca.ServingFor(names, nil, ownLifetime)
	})
	if err != nil {
		return nil, err
	}
	a.client, err = pki.NewRenewing("client of agents", log, func() ([]byte, []byte, error) {
		return ca.Client(wire.APIName, nil, ownLifetime)
	})
	return a, err
}

func load(ctx context.Context, client kubernetes.Interface, namespace, name string) (*pki.CA, error) {
	secrets := client.CoreV1().Secrets(namespace)
	for {
		secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("it does not exist: install it again (wherry cluster manifest): %w", err)
		}
		if err != nil {
			return nil, err
		}
		ca, err := read(secret)
		if ca != nil || err != nil {
			return ca, err
		}
		ca, key, err := pki.New("wherry-debug-ca")
		if err != nil {
			return nil, err
		}
		secret.Data = map[string][]byte{keyCert: ca.CertPEM(), keyKey: key}
		// the version that was read: whoever comes second is refused, and reads what the first has written
		if _, err = secrets.Update(ctx, secret, metav1.UpdateOptions{}); err == nil {
			return ca, nil
		}
		if !apierrors.IsConflict(err) {
			return nil, err
		}
	}
}

// read is the CA in a Secret; nil if there is none yet.
func read(secret *corev1.Secret) (*pki.CA, error) {
	cert, key := secret.Data[keyCert], secret.Data[keyKey]
	switch {
	case len(cert) == 0 && len(key) == 0:
		return nil, nil
	case len(cert) == 0 || len(key) == 0:
		return nil, fmt.Errorf("it has only one of %s and %s: remove that too, and a new authority is made", keyCert,
			keyKey)
	}
	return pki.Parse(cert, key)
}

// Run renews the API's certificates until ctx is done.
func (a *Authority) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { a.Serving.Run(ctx) })
	all.Go(func() { a.client.Run(ctx) })
	all.Wait()
}

// ErrReplaced says that the Secret has another CA, or none, than when it was loaded: who has loaded it must do so
// again. Were it used on, servers with different ones would take turns in what they publish to the cluster.
var ErrReplaced = errors.New("the authority in the Secret was replaced")

// Check fails with ErrReplaced if the Secret has another CA by now, and with another error where it cannot be read.
func (a *Authority) Check(ctx context.Context) error {
	secret, err := a.stored(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return ErrReplaced
	case err != nil:
		return err
	case !bytes.Equal(bytes.TrimSpace(secret.Data[keyCert]), bytes.TrimSpace(a.CertPEM())):
		return ErrReplaced
	}
	return nil
}

// CertPEM is the CA's certificate, in PEM form.
func (a *Authority) CertPEM() []byte { return a.ca.CertPEM() }

// Pool is whom to trust: the CA alone.
func (a *Authority) Pool() *x509.CertPool { return a.ca.Pool() }

// ClientSide is the certificate that agents are shown.
func (a *Authority) ClientSide(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return a.client.ClientSide(r)
}

// Sign makes the certificate that a request was judged worthy of, followed by the CA's, by which an agent knows whom to
// trust. It ends at lifetime from now, or with the CA.
func (a *Authority) Sign(r *x509.CertificateRequest, lifetime time.Duration) ([]byte, error) {
	now := time.Now()
	leaf, err := a.ca.Sign(&x509.Certificate{
		Subject: r.Subject, DNSNames: r.DNSNames, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, r.PublicKey)
	if err != nil {
		return nil, err
	}
	return append(leaf, a.ca.CertPEM()...), nil
}

// clockSkew lets a node whose clock is behind use a certificate that was made this second.
const clockSkew = 5 * time.Minute
