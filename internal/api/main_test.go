// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/audit"
	"github.com/wherryproject/wherry/internal/store"
)

// shared is the one server most tests use, each in a namespace of its own.
var shared struct {
	dir  string
	etcd *store.Etcd
	srv  *api.Server
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(externalEtcdEnv); dir != "" {
		os.Exit(runExternalEtcd(dir))
	}
	flag.Parse()
	// no target needs a server, and could try but little while two of them start
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(m.Run())
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "wherry-api-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	began := time.Now()
	shared.dir = dir
	// that a machine is slow is no news
	failing := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	if shared.etcd, err = store.Start(ctx, store.Config{Dir: filepath.Join(dir, "etcd"), Logger: failing}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.etcd.Close()
	tokens := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte("jane-token,jane,1,\"readers\"\nroot-token,root,2,\"system:masters\"\n"),
		0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	recording := audit.Defaults()
	shared.srv, err = api.New(ctx, api.Config{
		Audit: &recording, DataDir: dir, BindAddress: "127.0.0.1", Etcd: shared.etcd.Client(),
		TokenAuthFile: tokens, Logger: log,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	done := make(chan error, 1)
	go func() { done <- shared.srv.Run(ctx) }()
	select {
	case <-shared.srv.Ready():
		fmt.Fprintf(os.Stderr, "server ready after %v\n", time.Since(began).Round(time.Millisecond))
	case err := <-done:
		fmt.Fprintln(os.Stderr, "server ended:", err)
		return 1
	}
	code := m.Run()
	cancel()
	if err := <-done; err != nil {
		fmt.Fprintln(os.Stderr, "server did not stop cleanly:", err)
		return 1
	}
	return code
}

// adminConfig is what a person's kubectl uses: the kubeconfig, over TLS.
func adminConfig(t testing.TB) *rest.Config { return configOf(t, shared.srv) }

func configOf(t testing.TB, s *api.Server) *rest.Config {
	t.Helper()
	data, err := s.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func clientOf(t testing.TB, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func client(t testing.TB) *kubernetes.Clientset { return clientOf(t, adminConfig(t)) }

func dynamicClient(t testing.TB) *dynamic.DynamicClient {
	t.Helper()
	c, err := dynamic.NewForConfig(adminConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// namespace makes a namespace with a default service account for one test.
func namespace(t testing.TB, c kubernetes.Interface) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	if len(name) > 40 {
		name = name[:40]
	}
	name = strings.Trim(name, "-") + "-" + rand.String(5)
	if _, err := c.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().ServiceAccounts(name).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/app:1"}}},
	}
}

func createPod(t testing.TB, c kubernetes.Interface, ns string, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	out, err := c.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// boundPod makes a pod and gives it to a node.
func boundPod(t testing.TB, c kubernetes.Interface, ns string, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	p = createPod(t, c, ns, p)
	if err := bindPod(t, c, p, "node-1"); err != nil {
		t.Fatal(err)
	}
	p, err := c.CoreV1().Pods(ns).Get(t.Context(), p.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func bindPod(t testing.TB, c kubernetes.Interface, p *corev1.Pod, node string) error {
	return c.CoreV1().Pods(p.Namespace).Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}
