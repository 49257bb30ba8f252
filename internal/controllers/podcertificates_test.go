// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/controllers/ondemand"
	"github.com/wherryproject/wherry/internal/controllers/podcertificates"
	"github.com/wherryproject/wherry/internal/node/podcert"
)

// TestPodCertificates proves PL-05: a node asks for its pod's certificate, the signer wherry.dev/pod answers, and what
// comes is good for who trusts its bundle; each with no more rights than its default role gives. It starts with the
// first request, and an annotation that it does not know is denied, as is a signer of its domain that there is not.
func TestPodCertificates(t *testing.T) {
	client := start(t)
	ns, node := newNamespace(t, client), newNode(t, client, "4")
	t.Cleanup(func() { // the next run of this test begins without a request
		err := client.CertificatesV1().PodCertificateRequests(ns).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	as := func(user string, groups ...string) *rest.Config {
		config, err := server.As(user, groups...)
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	shared := kubernetes.NewForConfigOrDie(as(rbac.Controllers))
	m := ondemand.New([]ondemand.Controller{podcertificates.Controller(t.TempDir(), "cluster.local")}, ondemand.Config{
		As:        func(name string) (*rest.Config, error) { return server.As(rbac.ControllerUser(name)) },
		Looking:   ondemand.Looking{Client: shared, Metadata: metadata.NewForConfigOrDie(as(rbac.Controllers))},
		Informers: informers.NewSharedInformerFactory(shared, 0), Firsts: server.Firsts(), Crashes: crashes(),
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(client.CoreV1().Services(ns).Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "shop"}, Ports: []corev1.ServicePort{{Port: 443}}}}, metav1.CreateOptions{}))
	signer := podcertificates.Signer
	make := func(name string, notes map[string]string) *corev1.Pod {
		pod, err := client.CoreV1().Pods(ns).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "shop"}},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "x"}},
				Volumes: []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{{PodCertificate: &corev1.PodCertificateProjection{SignerName: signer,
						KeyType: "ECDSAP256", CredentialBundlePath: "both", MaxExpirationSeconds: ptr.To[int32](3600), UserAnnotations: notes}}}}}}}}}, metav1.CreateOptions{})
		must(pod, err)
		return pod
	}
	if m.Started(podcertificates.Name) {
		t.Error("it has started before there was a request")
	}
	agent := podcert.New(podcert.Config{Client: kubernetes.NewForConfigOrDie(as("system:node:"+node, "system:nodes")), Node: node,
		Changed: func(types.UID) {}, Event: func(_ *corev1.Pod, _, reason, message string) { t.Log(reason, message) },
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Patience: time.Minute})
	defer agent.Close()

	pod := make("shop-0", nil)
	agent.Register(pod)
	key, chain, err := agent.Get(ctx, pod.UID, "tls", 0, true)
	must(nil, err)
	pair, err := tls.X509KeyPair(chain, key)
	must(pair, err)
	bundle, err := client.CertificatesV1().ClusterTrustBundles().Get(ctx, podcertificates.Bundle, metav1.GetOptions{})
	must(bundle, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(bundle.Spec.TrustBundle))
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "shop." + ns + ".svc.cluster.local", KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		t.Error(err)
	}
	if pair.Leaf.URIs[0].String() != "spiffe://cluster.local/ns/"+ns+"/sa/default" || pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore) != time.Hour {
		t.Errorf("%+v", pair.Leaf)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: server.CA().Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("the API server trusts a pod's certificate")
	}
	noted := make("shop-1", map[string]string{"e.com/a": "b"})
	agent.Register(noted)
	if _, _, err := agent.Get(ctx, noted.UID, "tls", 0, true); err == nil || !strings.Contains(err.Error(), `permanently denied: reason="InvalidUnverifiedUserAnnotations"`) {
		t.Error(err)
	}
	signer = "wherry.dev/other"
	foreign := make("shop-2", nil)
	agent.Register(foreign)
	if _, _, err := agent.Get(ctx, foreign.UID, "tls", 0, true); err == nil || !strings.Contains(err.Error(), `permanently denied: reason="UnknownSigner"`) {
		t.Error(err)
	}
}
