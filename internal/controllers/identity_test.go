// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/pki"
)

// ask makes a request for a certificate and returns how it changes from then on.
func ask(t *testing.T, client kubernetes.Interface, name, signer string, subject pkix.Name,
	usages ...certificatesv1.KeyUsage) watch.Interface {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.CertificatesV1().CertificateSigningRequests().Create(t.Context(),
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer,
				Usages: usages, ExpirationSeconds: ptr.To[int32](3600),
			}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.CertificatesV1().CertificateSigningRequests().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	w, err := client.CertificatesV1().CertificateSigningRequests().Watch(t.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: made.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// until returns the first object that the watch tells of and done wants.
func until[T any](t *testing.T, w watch.Interface, done func(T) bool) T {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case e := <-w.ResultChan():
			if r, ok := e.Object.(T); ok && done(r) {
				return r
			}
		case <-timeout:
			t.Fatal("it does not come")
		}
	}
}

// Identity: requests are signed once a person approves them, and those that their signer refuses say why; with no more
// rights than the controllers' default roles give.
func TestCertificates(t *testing.T) {
	client := start(t)
	approve := func(name string) {
		t.Helper()
		r, err := client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r.Status.Conditions = append(r.Status.Conditions,
			certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved,
				Status: corev1.ConditionTrue, Reason: "Test"})
		if _, err := client.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), name, r,
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w := ask(t, client, "person", certificatesv1.KubeAPIServerClientSignerName, pkix.Name{CommonName: "jane"},
		certificatesv1.UsageClientAuth)
	approve("person")
	r := until(t, w, func(r *certificatesv1.CertificateSigningRequest) bool { return len(r.Status.Certificate) > 0 })
	certs, err := pki.ParseCertificates(r.Status.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := certs[0].Verify(x509.VerifyOptions{Roots: server.CA().Pool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if left := time.Until(certs[0].NotAfter); certs[0].Subject.CommonName != "jane" || left > time.Hour ||
		left < 50*time.Minute {
		t.Errorf("%s, good for %v", certs[0].Subject, left)
	}

	w = ask(t, client, "wrong", certificatesv1.KubeAPIServerClientKubeletSignerName, pkix.Name{CommonName: "jane"},
		certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature)
	approve("wrong")
	r = until(t, w, func(r *certificatesv1.CertificateSigningRequest) bool { return len(r.Status.Conditions) > 1 })
	if c := r.Status.Conditions[1]; c.Type != certificatesv1.CertificateFailed ||
		c.Reason != "SignerValidationFailure" || !strings.Contains(c.Message, "must be exactly system:nodes") {
		t.Errorf("got %+v", c)
	}
}

// Identity: a bootstrap token's Secret goes when it expires; others stay.
func TestBootstrapTokensExpire(t *testing.T) {
	client := start(t)
	secrets := client.CoreV1().Secrets("kube-system")
	token := func(id, expiration string) *corev1.Secret {
		t.Helper()
		s, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" +
			id}, Type: corev1.SecretTypeBootstrapToken,
			StringData: map[string]string{"token-id": id, "expiration": expiration}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { secrets.Delete(context.Background(), s.Name, metav1.DeleteOptions{}) })
		return s
	}
	token("later1", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	token("never1", "")
	token("odd001", "tomorrow")
	s := token("soon01", time.Now().Add(2*time.Second).UTC().Format(time.RFC3339))
	w, err := secrets.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + s.Name,
		ResourceVersion: s.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Deleted {
			break
		}
	}
	for _, id := range []string{"later1", "never1", "odd001"} {
		if _, err := secrets.Get(t.Context(), "bootstrap-token-"+id, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
}
