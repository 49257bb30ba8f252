// SPDX-License-Identifier: Apache-2.0

package podcertificates

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestDecide: requests of ours are signed once, those of every signer go when they are old.
func TestDecide(t *testing.T) {
	made := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)}}
	for _, c := range []struct {
		signer   string
		answered bool
		age      time.Duration
		want     Action
	}{
		{Signer, false, 0, Sign}, {Signer, true, 0, Wait}, {"wherry.dev/other", false, 0, Deny},
		{"wherry.dev/other", true, 0, Wait}, {"wherry.dev.example.com/pod", false, 0, Wait}, {"example.com/s", false, 0, Wait},
		{"example.com/s", false, kept, Remove}, {Signer, false, kept, Remove}, {Signer, true, kept - 1, Wait},
	} {
		r.Spec.SignerName, r.Status.Conditions = c.signer, nil
		if c.answered {
			r.Status.Conditions = []metav1.Condition{{Type: "Issued"}}
		}
		do, again := Decide(r, made.Add(c.age))
		if do != c.want || (do == Wait) != (again.Equal(made.Add(kept))) {
			t.Errorf("%+v: %v, %v", c, do, again)
		}
	}
}

func request(t *testing.T) *certificatesv1.PodCertificateRequest {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"not.asked"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"},
		Spec: certificatesv1.PodCertificateRequestSpec{SignerName: Signer, PodName: "web-0", PodUID: "u", ServiceAccountName: "web",
			NodeName: "n1", StubPKCS10Request: der}}
}

func world() World {
	return World{Domain: "cluster.local", Pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "u", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{ServiceAccountName: "web", NodeName: "n1", Hostname: "web-0", Subdomain: "peers"}}}
}

func service(name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ServiceSpec{Selector: selector}}
}

// TestTemplate: a certificate names the pod's account and the services that select it, whatever the request asks for,
// and lives as long as was asked for, a day at most.
func TestTemplate(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 500, time.UTC)
	w := world()
	app := map[string]string{"app": "web"}
	w.Services = []*corev1.Service{service("web", app), service("other", map[string]string{"app": "db"}), service("none", nil), service("peers", app)}
	cert, _, refusal := Template(request(t), w, now)
	if refusal != nil {
		t.Fatal(refusal)
	}
	want := "peers.shop.svc peers.shop.svc.cluster.local web-0.peers.shop.svc web-0.peers.shop.svc.cluster.local web.shop.svc web.shop.svc.cluster.local"
	if got := strings.Join(cert.DNSNames, " "); got != want || cert.URIs[0].String() != "spiffe://cluster.local/ns/shop/sa/web" ||
		cert.IsCA || cert.Subject.String() != "" || len(cert.IPAddresses)+len(cert.EmailAddresses) > 0 {
		t.Errorf("%+v", cert)
	}
	if cert.NotAfter.Sub(cert.NotBefore) != 24*time.Hour || cert.NotBefore.After(now) {
		t.Errorf("%v to %v", cert.NotBefore, cert.NotAfter)
	}
	short := request(t)
	short.Spec.MaxExpirationSeconds = ptr.To[int32](3600)
	if cert, _, refusal = Template(short, w, now); refusal != nil || cert.NotAfter.Sub(cert.NotBefore) != time.Hour {
		t.Errorf("%+v, %v", cert, refusal)
	}
	if at := RenewAt(cert.NotBefore, cert.NotAfter); at.Sub(cert.NotBefore) != 40*time.Minute {
		t.Error(at)
	}
	w.Services = nil
	for i := range 2 * mostServices {
		w.Services = append(w.Services, service(fmt.Sprintf("s%03d", i), app))
	}
	if cert, _, _ = Template(request(t), w, now); len(cert.DNSNames) != 2*mostServices || !slices.Contains(cert.DNSNames, "s031.shop.svc") {
		t.Errorf("%d names", len(cert.DNSNames))
	}
}

// TestRefusals: what is not as the API knows it is refused, and says why. ATTACK A9.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*certificatesv1.PodCertificateRequest, *World)
		kind   string
		why    string
	}{
		{"annotations", func(r *certificatesv1.PodCertificateRequest, _ *World) {
			r.Spec.UnverifiedUserAnnotations = map[string]string{"e.com/b": "", "e.com/a": ""}
		}, "Denied", "leave out e.com/a, e.com/b"},
		{"no pod", func(_ *certificatesv1.PodCertificateRequest, w *World) { w.Pod = nil }, "Failed", "there is no pod shop/web-0"},
		{"another pod", func(r *certificatesv1.PodCertificateRequest, _ *World) { r.Spec.PodUID = "x" }, "Failed", "with UID x"},
		{"another account", func(r *certificatesv1.PodCertificateRequest, _ *World) { r.Spec.ServiceAccountName = "admin" }, "Failed", "has account web"},
		{"another node", func(r *certificatesv1.PodCertificateRequest, _ *World) { r.Spec.NodeName = "n2" }, "Failed", "is on node n1"},
		{"no request", func(r *certificatesv1.PodCertificateRequest, _ *World) { r.Spec.StubPKCS10Request = []byte("x") }, "Failed", "stubPKCS10Request"},
	} {
		r, w := request(t), world()
		c.change(r, &w)
		cert, _, refusal := Template(r, w, time.Now())
		if cert != nil || refusal == nil || refusal.Type != c.kind || !strings.Contains(refusal.Message, c.why) {
			t.Errorf("%s: %+v", c.name, refusal)
		}
	}
}
