// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/pki"
)

func nodeSubjectOf(name string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
}

func newRequest(t *testing.T, signer string, template x509.CertificateRequest, usages ...certificatesv1.KeyUsage) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer, Usages: usages,
	}}
}

const (
	sign   = certificatesv1.UsageDigitalSignature
	encode = certificatesv1.UsageKeyEncipherment
	client = certificatesv1.UsageClientAuth
	server = certificatesv1.UsageServerAuth
)

// Identity: what each signer signs, by the rules of the Kubernetes documentation.
// ATTACK A9.
func TestSigners(t *testing.T) {
	node := x509.CertificateRequest{Subject: nodeSubjectOf("n1")}
	with := func(change func(*x509.CertificateRequest)) x509.CertificateRequest {
		r := node
		change(&r)
		return r
	}
	mail := func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b.c"} }
	dns := func(r *x509.CertificateRequest) { r.DNSNames = []string{"n1"} }
	ip := func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }
	uri := func(r *x509.CertificateRequest) {
		r.DNSNames, r.URIs = []string{"n1"}, []*url.URL{{Scheme: "spiffe", Host: "x"}}
	}
	usages := func(u ...certificatesv1.KeyUsage) []certificatesv1.KeyUsage { return u }
	const api, kubelet, serving = certificatesv1.KubeAPIServerClientSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName
	for _, c := range []struct {
		name, signer string
		request      x509.CertificateRequest
		usages       []certificatesv1.KeyUsage
		err          string
	}{
		{"person", api, x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane", Organization: []string{"dev"}}}, usages(client), ""},
		{"person, RSA usages", api, with(mail), usages(sign, encode, client), ""},
		{"person, server", api, node, usages(client, server), `usage "server auth" is not allowed`},
		{"person, no client", api, node, usages(sign), `usages must include "client auth"`},
		{"person, CA", api, node, usages(client, certificatesv1.UsageCertSign), `usage "cert sign" is not allowed`},
		{"node", kubelet, node, usages(sign, client), ""},
		{"node, RSA usages", kubelet, node, usages(sign, encode, client), ""},
		{"node without signature", kubelet, node, usages(client), `usages must include "digital signature"`},
		{"node as server", kubelet, node, usages(sign, server), `usages must include "client auth"`},
		{"node with a name", kubelet, with(dns), usages(sign, client), "subject alternative names are not allowed"},
		{"node with an address", kubelet, with(ip), usages(sign, client), "subject alternative names are not allowed"},
		{"node of masters", kubelet, with(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:nodes", "system:masters"} }), usages(sign, client), "must be exactly system:nodes"},
		{"node of nobody", kubelet, with(func(r *x509.CertificateRequest) { r.Subject.Organization = nil }), usages(sign, client), "must be exactly system:nodes"},
		{"node by another name", kubelet, with(func(r *x509.CertificateRequest) { r.Subject.CommonName = "admin" }), usages(sign, client), "common name must be system:node:"},
		{"node without name", kubelet, with(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:" }), usages(sign, client), "common name must be system:node:"},
		{"node's API", serving, with(dns), usages(sign, server), ""},
		{"node's API by address", serving, with(ip), usages(sign, encode, server), ""},
		{"node's API without name", serving, node, usages(sign, server), "at least one DNS name or IP address"},
		{"node's API with mail", serving, with(func(r *x509.CertificateRequest) { dns(r); mail(r) }), usages(sign, server), "email and URI"},
		{"node's API with URI", serving, with(uri), usages(sign, server), "email and URI"},
		{"node's API as client", serving, with(dns), usages(sign, client), `usages must include "server auth"`},
		{"somebody else's signer", "example.com/x", node, usages(client), "is not served here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRequest(t, c.signer, c.request, c.usages...)
			now := time.Now()
			template, csr, err := Template(r, now, Longest)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("want %q, got %v", c.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if template.IsCA || template.Subject.String() != csr.Subject.String() || len(template.DNSNames)+len(template.IPAddresses)+len(template.EmailAddresses) !=
				len(c.request.DNSNames)+len(c.request.IPAddresses)+len(c.request.EmailAddresses) || len(template.ExtKeyUsage) != 1 {
				t.Errorf("got %+v", template)
			}
			if !template.NotAfter.Equal(now.Add(Longest)) {
				t.Errorf("ends %v", template.NotAfter)
			}
		})
	}
}

// Identity: the lifetime is what was asked for, at most the server's.
func TestLifetime(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		asked         *int32
		longest, want time.Duration
	}{
		{nil, Longest, Longest},
		{ptr.To[int32](600), Longest, 10 * time.Minute},
		{ptr.To[int32](1 << 30), time.Hour, time.Hour},
	} {
		r := newRequest(t, certificatesv1.KubeAPIServerClientSignerName, x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane"}}, client)
		r.Spec.ExpirationSeconds = c.asked
		template, _, err := Template(r, now, c.longest)
		if err != nil || !template.NotAfter.Equal(now.Add(c.want)) || !template.NotBefore.Before(now) {
			t.Errorf("%v of %v: %v, %v", c.asked, c.longest, template, err)
		}
	}
}

func met(kind certificatesv1.RequestConditionType, at time.Time) certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue, LastUpdateTime: metav1.NewTime(at)}
}

// Identity: who is approved without a person, when requests are signed and when they are removed (Kubernetes' ages).
// ATTACK A9.
func TestDecide(t *testing.T) {
	made := time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	ca, err := pki.LoadOrCreate(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	short, _, err := ca.Client("x", nil, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	const kubelet = certificatesv1.KubeAPIServerClientKubeletSignerName
	node := newRequest(t, kubelet, x509.CertificateRequest{Subject: nodeSubjectOf("n1")}, sign, client)
	serving := newRequest(t, certificatesv1.KubeletServingSignerName, x509.CertificateRequest{Subject: nodeSubjectOf("n1"), DNSNames: []string{"n1"}}, sign, server)
	person := newRequest(t, certificatesv1.KubeAPIServerClientSignerName, x509.CertificateRequest{Subject: nodeSubjectOf("n1")}, sign, client)
	wrong := newRequest(t, kubelet, x509.CertificateRequest{Subject: pkix.Name{CommonName: "admin"}}, sign, client)
	bootstrap, nodes := []string{"system:bootstrappers", "system:authenticated"}, []string{"system:nodes", "system:authenticated"}
	for _, c := range []struct {
		name       string
		r          *certificatesv1.CertificateSigningRequest
		user       string
		groups     []string
		conditions []certificatesv1.CertificateSigningRequestCondition
		cert       []byte
		after      time.Duration
		want       Action
		again      time.Duration // after made; for Wait
	}{
		{"joins", node, "system:bootstrap:abcdef", bootstrap, nil, nil, 0, Approve, 0},
		{"renews", node, "system:node:n1", nodes, nil, nil, 0, Approve, 0},
		{"for another node", node, "system:node:n2", nodes, nil, nil, 0, Wait, keptPending},
		{"by that name, but no node", node, "system:node:n1", nil, nil, nil, 0, Wait, keptPending},
		{"by a person", node, "jane", []string{"dev"}, nil, nil, 0, Wait, keptPending},
		{"for something else by a token", wrong, "system:bootstrap:abcdef", bootstrap, nil, nil, 0, Wait, keptPending},
		{"for the node's API", serving, "system:node:n1", nodes, nil, nil, 0, Wait, keptPending},
		{"for a person by a token", person, "system:bootstrap:abcdef", bootstrap, nil, nil, 0, Wait, keptPending},
		{"approved", serving, "system:node:n1", nodes, []certificatesv1.CertificateSigningRequestCondition{met("Approved", made)}, nil, 0, Sign, 0},
		{"approved, for another signer", newRequest(t, "example.com/x", x509.CertificateRequest{}, client), "jane", nil,
			[]certificatesv1.CertificateSigningRequestCondition{met("Approved", made)}, nil, 0, Wait, keptAnswered},
		{"denied", node, "system:node:n1", nodes, []certificatesv1.CertificateSigningRequestCondition{met("Denied", made.Add(time.Minute))}, nil, 2 * time.Minute, Wait, keptAnswered + time.Minute},
		{"failed", node, "system:node:n1", nodes, []certificatesv1.CertificateSigningRequestCondition{met("Approved", made), met("Failed", made)}, nil, 0, Wait, keptAnswered},
		{"issued", node, "system:node:n1", nodes, []certificatesv1.CertificateSigningRequestCondition{met("Approved", made)}, []byte("junk"), 0, Wait, keptAnswered},
		{"pending for a day", node, "jane", nil, nil, nil, keptPending, Remove, 0},
		{"pending for nearly a day", node, "jane", nil, nil, nil, keptPending - time.Second, Wait, keptPending},
		{"denied an hour ago", node, "jane", nil, []certificatesv1.CertificateSigningRequestCondition{met("Denied", made)}, nil, keptAnswered, Remove, 0},
		{"failed an hour ago", node, "jane", nil, []certificatesv1.CertificateSigningRequestCondition{met("Failed", made)}, nil, keptAnswered, Remove, 0},
		{"issued an hour ago", node, "jane", nil, []certificatesv1.CertificateSigningRequestCondition{met("Approved", made)}, []byte("junk"), keptAnswered, Remove, 0},
		{"its certificate has expired", node, "jane", nil, []certificatesv1.CertificateSigningRequestCondition{met("Approved", made)}, short, time.Minute, Remove, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.r.DeepCopy()
			r.CreationTimestamp = metav1.NewTime(made)
			r.Spec.Username, r.Spec.Groups = c.user, c.groups
			r.Status.Conditions, r.Status.Certificate = c.conditions, c.cert
			got := Decide(r, made.Add(c.after))
			if got.Action != c.want || c.want == Wait && !got.Again.Equal(made.Add(c.again)) {
				t.Errorf("got %+v", got)
			}
			if (c.want == Approve || c.want == Remove) && got.Why == "" {
				t.Error("no reason")
			}
		})
	}
}
