// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/pki"
)

// Names of the example: the agent of node edge asks.
func agents() Agents { return Agents{Namespace: "wherry-debug", Account: "wherry-debug-agent"} }

func agentPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent-1", Namespace: "wherry-debug", UID: "u1"},
		Spec: corev1.PodSpec{NodeName: "edge", ServiceAccountName: "wherry-debug-agent"}}
}

func certificateRequest() *x509.CertificateRequest {
	return &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "wherry-debug-agent:edge", Organization: []string{wire.AgentOrg}},
		DNSNames: []string{"edge.node.agents.debug.wherry.dev"}}
}

func encoded(t testing.TB, r *x509.CertificateRequest, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, r, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func ecKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signingRequest(request []byte) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: wire.SignerName, Username: "system:serviceaccount:wherry-debug:wherry-debug-agent",
		Request: request, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature,
			certificatesv1.UsageServerAuth},
		Extra: map[string]certificatesv1.ExtraValue{"authentication.kubernetes.io/pod-name": {"agent-1"},
			"authentication.kubernetes.io/pod-uid": {"u1"}}}}
}

// A certificate is made for the node of the pod that asks, and nothing else is. Proves DA-07.
func TestJudge(t *testing.T) {
	key := ecKey(t)
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	as := func(change func(*x509.CertificateRequest)) func(*certificatesv1.CertificateSigningRequest, *corev1.Pod) {
		return func(csr *certificatesv1.CertificateSigningRequest, _ *corev1.Pod) {
			r := certificateRequest()
			change(r)
			csr.Spec.Request = encoded(t, r, key)
		}
	}
	for _, c := range []struct {
		what   string
		change func(*certificatesv1.CertificateSigningRequest, *corev1.Pod)
		want   string // in the refusal; empty: there is none
	}{
		{"an agent", func(*certificatesv1.CertificateSigningRequest, *corev1.Pod) {}, ""},
		{"another account", func(s *certificatesv1.CertificateSigningRequest, _ *corev1.Pod) {
			s.Spec.Username = "system:serviceaccount:shop:wherry-debug-agent"
		}, "are for system:serviceaccount:wherry-debug:wherry-debug-agent alone"},
		{"a person", func(s *certificatesv1.CertificateSigningRequest, _ *corev1.Pod) { s.Spec.Username = "jane" },
			`"jane" asks`},
		{"no pod", func(s *certificatesv1.CertificateSigningRequest, _ *corev1.Pod) { s.Spec.Extra = nil },
			"not made with a token that is bound to a pod"},
		{"two pods", func(s *certificatesv1.CertificateSigningRequest, _ *corev1.Pod) {
			s.Spec.Extra["authentication.kubernetes.io/pod-name"] = []string{"agent-1", "agent-2"}
		}, "not made with a token that is bound to a pod"},
		{"another pod of the name", func(_ *certificatesv1.CertificateSigningRequest, p *corev1.Pod) { p.UID = "u2" },
			"not there any more"},
		{"a pod of another namespace", func(_ *certificatesv1.CertificateSigningRequest, p *corev1.Pod) {
			p.Namespace = "shop"
		}, "not there any more"},
		{"a pod of another account", func(_ *certificatesv1.CertificateSigningRequest, p *corev1.Pod) {
			p.Spec.ServiceAccountName = "default"
		}, "service account default"},
		{"a pod without a node", func(_ *certificatesv1.CertificateSigningRequest,
			p *corev1.Pod) {
			p.Spec.NodeName = ""
		},
			"has no node"},
		{"another node", func(_ *certificatesv1.CertificateSigningRequest, p *corev1.Pod) { p.Spec.NodeName = "core" },
			"from node core"},
		{"another signer", func(s *certificatesv1.CertificateSigningRequest, _ *corev1.Pod) {
			s.Spec.SignerName = "kubernetes.io/kubelet-serving"
		}, "the signer is"},
		{"a client's certificate", func(s *certificatesv1.CertificateSigningRequest, _ *corev1.Pod) {
			s.Spec.Usages = append(s.Spec.Usages, certificatesv1.UsageClientAuth)
		}, "for serving alone"},
		{"nothing to use it for", func(s *certificatesv1.CertificateSigningRequest, _ *corev1.Pod) {
			s.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature}
		}, "is not asked for"},
		{"the API's name", as(func(r *x509.CertificateRequest) { r.Subject.CommonName = wire.APIName }), "it must be"},
		{"another organisation", as(func(r *x509.CertificateRequest) {
			r.Subject.Organization = []string{"system:masters"}
		}), "organisations"},
		{"one organisation more", as(func(r *x509.CertificateRequest) {
			r.Subject.Organization = append(r.Subject.Organization, "system:masters")
		}), "organisations"},
		{"a unit", as(func(r *x509.CertificateRequest) { r.Subject.OrganizationalUnit = []string{"x"} }),
			"more than a name"},
		{"the API's DNS name", as(func(r *x509.CertificateRequest) {
			r.DNSNames = append(r.DNSNames, "wherry-debug-api.wherry-debug.svc")
		}), "DNS names"},
		{"no DNS name", as(func(r *x509.CertificateRequest) { r.DNSNames = nil }), "DNS names"},
		{"an address", as(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }),
			"addresses"},
		{"a URI", as(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }),
			"addresses"},
		{"a key of RSA", func(s *certificatesv1.CertificateSigningRequest, _ *corev1.Pod) {
			s.Spec.Request = encoded(t, certificateRequest(), weak)
		}, "ECDSA or Ed25519"},
		{"nonsense", func(s *certificatesv1.CertificateSigningRequest, _ *corev1.Pod) {
			s.Spec.Request = []byte("please")
		}, "PEM form"},
		{"two requests", func(s *certificatesv1.CertificateSigningRequest, _ *corev1.Pod) {
			s.Spec.Request = slices.Concat(s.Spec.Request, s.Spec.Request)
		}, "PEM form"},
		{"a signature that was changed", func(s *certificatesv1.CertificateSigningRequest, _ *corev1.Pod) {
			block, _ := pem.Decode(s.Spec.Request)
			block.Bytes[len(block.Bytes)-1] ^= 1
			s.Spec.Request = pem.EncodeToMemory(block)
		}, "spec.request"},
	} {
		csr, pod := signingRequest(encoded(t, certificateRequest(), key)), agentPod()
		c.change(csr, pod)
		_, err := agents().Judge(csr, pod)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s is refused: %v", c.what, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want words with %q", c.what, err, c.want)
		}
	}
	if _, err := agents().Judge(signingRequest(encoded(t, certificateRequest(), key)), nil); err == nil {
		t.Error("a pod that is not there gets a certificate")
	}
}

// What is signed is for serving under the node's name, ends in time, and is followed by whom to trust. Proves DA-07.
func TestSign(t *testing.T) {
	ca, _, err := pki.New("test")
	if err != nil {
		t.Fatal(err)
	}
	key := ecKey(t)
	csr := signingRequest(encoded(t, certificateRequest(), key))
	r, err := agents().Judge(csr, agentPod())
	if err != nil {
		t.Fatal(err)
	}
	csr.Spec.ExpirationSeconds = ptr.To[int32](3600)
	text, err := (&Authority{ca: ca}).Sign(r, lifetime(csr))
	if err != nil {
		t.Fatal(err)
	}
	chain, err := pki.ParseCertificates(text)
	if err != nil || len(chain) != 2 || !chain[1].IsCA {
		t.Fatalf("got %d certificates, %v", len(chain), err)
	}
	verify := func(use x509.ExtKeyUsage) error {
		_, err := chain[0].Verify(x509.VerifyOptions{Roots: ca.Pool(), DNSName: wire.ServerName("edge"),
			KeyUsages: []x509.ExtKeyUsage{use}})
		return err
	}
	if err := verify(x509.ExtKeyUsageServerAuth); err != nil {
		t.Error(err)
	}
	if verify(x509.ExtKeyUsageClientAuth) == nil {
		t.Error("an agent's certificate opens another agent")
	}
	if left := time.Until(chain[0].NotAfter); left > time.Hour || left < 59*time.Minute {
		t.Errorf("asked for an hour, got %v", left)
	}
}

func TestLifetime(t *testing.T) {
	for _, c := range []struct {
		asked *int32
		want  time.Duration
	}{{nil, longest}, {ptr.To[int32](86400), 24 * time.Hour}, {ptr.To[int32](1), shortest},
		{ptr.To[int32](1 << 30), longest}, {ptr.To[int32](-5), shortest}} {
		csr := signingRequest(nil)
		csr.Spec.ExpirationSeconds = c.asked
		if got := lifetime(csr); got != c.want {
			t.Errorf("asked for %v: got %v, want %v", c.asked, got, c.want)
		}
	}
}

// What has been decided stays so.
func TestStateOf(t *testing.T) {
	with := func(kinds ...certificatesv1.RequestConditionType) certificatesv1.CertificateSigningRequestStatus {
		var s certificatesv1.CertificateSigningRequestStatus
		for _, k := range kinds {
			s.Conditions = append(s.Conditions, condition(k, "", ""))
		}
		return s
	}
	signed := with(certificatesv1.CertificateApproved)
	signed.Certificate = []byte("x")
	for _, c := range []struct {
		status certificatesv1.CertificateSigningRequestStatus
		want   state
	}{
		{with(), pending}, {with(certificatesv1.CertificateApproved), approved},
		{with(certificatesv1.CertificateDenied), over}, {signed, over},
		{with(certificatesv1.CertificateApproved, certificatesv1.CertificateFailed), over},
	} {
		if got := stateOf(&certificatesv1.CertificateSigningRequest{Status: c.status}); got != c.want {
			t.Errorf("%+v: got %v, want %v", c.status, got, c.want)
		}
	}
}

// A request that somebody has made up is refused and never a panic, and one that is granted has the node's names.
func FuzzJudge(f *testing.F) {
	key := ecKey(f)
	f.Add(encoded(f, certificateRequest(), key))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, request []byte) {
		r, err := agents().Judge(signingRequest(request), agentPod())
		if err == nil && (r.Subject.CommonName != "wherry-debug-agent:edge" || len(r.DNSNames) != 1) {
			t.Errorf("granted: %v %v", r.Subject, r.DNSNames)
		}
	})
}
