// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/controllers/certificates"
	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/internal/store"
)

// lifetime is that of the certificates which the test's server signs.
const lifetime = 10 * time.Second

func TestMain(m *testing.M) {
	transport.CertCallbackRefreshDuration = 100 * time.Millisecond // five minutes is much for certificates of seconds
	os.Exit(m.Run())
}

// cluster is a real API server with the controller that signs.
type cluster struct {
	srv    *api.Server
	admin  *kubernetes.Clientset
	config *rest.Config
}

func start(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	etcd, err := store.Start(ctx, store.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := api.New(ctx, api.Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{etcd.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	served, answered := make(chan error, 1), make(chan error, 1)
	go func() { served <- srv.Run(ctx) }()
	<-srv.Ready()
	text, err := srv.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	admin := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(admin, 0)
	signer := certificates.New(admin, factory, slog.New(slog.DiscardHandler), srv.CA(), lifetime)
	factory.Start(ctx.Done())
	go func() { answered <- signer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		if err := errors.Join(<-answered, <-served, etcd.Close()); err != nil {
			t.Error(err)
		}
	})
	return &cluster{srv, admin, config}
}

// bootstrap writes a bootstrap kubeconfig with a new token.
func (c *cluster) bootstrap(t *testing.T, id string, ends time.Time) string {
	t.Helper()
	_, err := c.admin.CoreV1().Secrets("kube-system").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true", "expiration": ends.UTC().Format(time.RFC3339)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := pki.WriteKubeconfig(c.srv.URL(), c.srv.CA().CertPEM(), "bootstrap", &clientcmdapi.AuthInfo{Token: id + ".0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bootstrap")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func agent(t *testing.T, bootstrap string) Config {
	dir := t.TempDir()
	return Config{NodeName: "n1", Kubeconfig: filepath.Join(dir, "kubeconfig"), Bootstrap: bootstrap, Dir: filepath.Join(dir, "pki"), Logger: slog.New(slog.DiscardHandler)}
}

func whoami(ctx context.Context, client kubernetes.Interface) (string, error) {
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username + " " + fmt.Sprint(review.Status.UserInfo.Groups), nil
}

// Identity: an agent joins with a bootstrap token, and its certificate is renewed before it ends, without a restart of whoever uses it.
func TestJoin(t *testing.T) {
	c := start(t)
	a := agent(t, c.bootstrap(t, "aaaaaa", time.Now().Add(time.Hour)))
	client, err := Join(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	pair := filepath.Join(a.Dir, "agent-client-current.pem")
	for _, file := range []string{a.Kubeconfig, pair} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", a.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	k := kubernetes.NewForConfigOrDie(config)
	if who, err := whoami(t.Context(), k); err != nil || who != "system:node:n1 [system:nodes system:authenticated]" {
		t.Fatalf("%q, %v", who, err)
	}
	first, err := pki.ReadCertificates(pair)
	if err != nil {
		t.Fatal(err)
	}
	// The one client goes on beyond the end of the first certificate.
	for { // nothing tells when the library takes the new certificate; a busy machine may be late
		_, err := whoami(t.Context(), k)
		if err == nil && time.Now().After(first[0].NotAfter) {
			break
		}
		if time.Now().After(first[0].NotAfter.Add(time.Minute)) {
			t.Fatalf("a minute after the end of the first certificate: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	now, err := pki.ReadCertificates(pair)
	if err != nil || now[0].Equal(first[0]) {
		t.Errorf("not renewed: %v", err)
	}
	keys, err := filepath.Glob(filepath.Join(a.Dir, "agent-client-2*.pem"))
	if err != nil || len(keys) != 1 {
		t.Errorf("keys on disk: %v, %v", keys, err)
	}
	requests, err := c.admin.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(requests.Items, func(r certificatesv1.CertificateSigningRequest) bool { // names are by chance, and so their order
		return r.Spec.Username == "system:node:n1"
	}) {
		t.Errorf("requests: %v", requests.Items)
	}

	t.Run("who joins again gets a new certificate", func(t *testing.T) {
		client.Close()
		if err := os.Remove(a.Kubeconfig); err != nil {
			t.Fatal(err)
		}
		before, err := pki.ReadCertificates(pair)
		if err != nil {
			t.Fatal(err)
		}
		if client, err = Join(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if now, err := pki.ReadCertificates(pair); err != nil || now[0].Equal(before[0]) {
			t.Errorf("it is the same, %v", err)
		}
	})
	t.Run("after a restart the token is not needed", func(t *testing.T) {
		client.Close()
		if err := c.admin.CoreV1().Secrets("kube-system").Delete(t.Context(), "bootstrap-token-aaaaaa", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		again, err := Join(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
	})
	t.Run("somebody else's kubeconfig is left alone", func(t *testing.T) {
		other := a
		other.Dir = t.TempDir()
		client, err := Join(t.Context(), other)
		if err != nil || client != nil {
			t.Errorf("got %v, %v", client, err)
		}
	})
}

// Identity: what an agent says that cannot join.
func TestJoinRefusals(t *testing.T) {
	c := start(t)
	expired := c.bootstrap(t, "bbbbbb", time.Now().Add(-time.Minute))
	insecure := filepath.Join(t.TempDir(), "insecure")
	config, err := clientcmd.LoadFromFile(expired)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.InsecureSkipTLSVerify, cluster.CertificateAuthorityData = true, nil
	}
	if err := clientcmd.WriteToFile(*config, insecure); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, bootstrap, want string }{
		{"no kubeconfig at all", "", "does not exist: give --bootstrap-kubeconfig"},
		{"an expired token", expired, "create another with wherry token create"},
		{"no check of the server", insecure, "does not verify the API server's certificate"},
		{"no such file", "/nowhere", "--bootstrap-kubeconfig"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := agent(t, test.bootstrap)
			_, err := Join(t.Context(), a)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(fmt.Sprint(err), "0123456789abcdef") {
				t.Errorf("the error tells the token: %v", err)
			}
			if _, err := os.Stat(a.Kubeconfig); err == nil {
				t.Error("a kubeconfig was written")
			}
		})
	}
}

// Identity: the certificate of the node's API is asked for, shown once a person has approved it, and until then another one is.
func TestServing(t *testing.T) {
	c := start(t)
	a := agent(t, c.bootstrap(t, "cccccc", time.Now().Add(time.Hour)))
	client, err := Join(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	config, err := clientcmd.BuildConfigFromFlags("", a.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	meantime := &tls.Certificate{}
	s, err := NewServing(a, config, []net.IP{net.IPv4(10, 1, 2, 3)}, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return meantime, nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	w, err := c.admin.CertificatesV1().CertificateSigningRequests().Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0", FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		r, ok := e.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok {
			t.Fatal(e)
		}
		if len(r.Status.Certificate) > 0 {
			break
		}
		if len(r.Status.Conditions) > 0 {
			continue
		}
		if r.Spec.Username != "system:node:n1" {
			t.Fatalf("asked by %s", r.Spec.Username)
		}
		if got, _ := s.Get(nil); got != meantime {
			t.Fatal("there is a certificate that nobody has approved")
		}
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"})
		if _, err := c.admin.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), r.Name, r, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var got *tls.Certificate
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { // the library tells nobody
		if got, _ = s.Get(nil); got != meantime {
			break
		}
	}
	if got == meantime || got.Leaf.VerifyHostname("10.1.2.3") != nil || got.Leaf.VerifyHostname("n1") != nil {
		t.Errorf("shown: %+v", got.Leaf)
	}
}
