// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/controllers/bootstraptokens"
	"github.com/wherryproject/wherry/internal/controllers/certificates"
	"github.com/wherryproject/wherry/internal/controllers/loadbalancer"
	"github.com/wherryproject/wherry/internal/controllers/namespace"
	"github.com/wherryproject/wherry/internal/controllers/nodelifecycle"
	"github.com/wherryproject/wherry/internal/controllers/podgc"
	"github.com/wherryproject/wherry/internal/controllers/roleaggregation"
	"github.com/wherryproject/wherry/internal/controllers/rootca"
	"github.com/wherryproject/wherry/internal/controllers/scheduler"
	"github.com/wherryproject/wherry/internal/controllers/serviceaccount"
	"github.com/wherryproject/wherry/internal/debug/bookkeeping"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/store"
)

// server is the real API server on a real etcd, in this process.
var server *api.Server

func TestMain(m *testing.M) { os.Exit(withServer(m)) }

func withServer(m *testing.M) int {
	dir, err := os.MkdirTemp("", "wherry-controllers-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	etcd, err := store.Start(ctx, store.Config{Dir: filepath.Join(dir, "etcd"), Logger: log})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer etcd.Close()
	server, err = api.New(ctx, api.Config{DataDir: dir, BindAddress: "127.0.0.1", Etcd: etcd.Client(), Logger: log})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	select {
	case <-server.Ready():
	case err := <-done:
		fmt.Fprintln(os.Stderr, "server ended:", err)
		return 1
	}
	code := m.Run()
	cancel()
	<-done
	return code
}

const ca = "-----BEGIN CERTIFICATE-----\ntest\n-----END CERTIFICATE-----\n"

// start runs all controllers until the test ends, and fails it if one of them does not end well.
func start(t *testing.T) kubernetes.Interface {
	t.Helper()
	client := admin(t)
	ctx, cancel := context.WithCancel(context.Background())
	stop := run(t, ctx)
	t.Cleanup(func() {
		cancel()
		stop()
	})
	return client
}

// admin is a client that may do anything.
func admin(t *testing.T) kubernetes.Interface {
	t.Helper()
	kubeconfig, err := server.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return kubernetes.NewForConfigOrDie(config)
}

// balancer is the address of the machine, as far as services of type LoadBalancer are told.
const balancer = "192.0.2.7"

func machinePool() *loadbalancer.Pool {
	return &loadbalancer.Pool{Machine: []netip.Addr{netip.MustParseAddr(balancer)}}
}

type controller interface{ Run(context.Context) error }

func run(t *testing.T, ctx context.Context) (wait func()) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	// Each as in the server: as the user whose default role must be enough.
	as := func(user string) *rest.Config {
		config, err := server.As(user)
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	client := func(user string) kubernetes.Interface { return kubernetes.NewForConfigOrDie(as(user)) }
	factory := informers.NewSharedInformerFactory(client(rbac.Controllers), 0)
	records, err := debugrun.NewClient(as(rbac.DebugRunController)) // nobody else may write records
	if err != nil {
		t.Fatal(err)
	}
	all := []controller{
		scheduler.New(client(rbac.Scheduler), factory, nil, log),
		namespace.New(client(rbac.NamespaceController), metadata.NewForConfigOrDie(as(rbac.NamespaceController)), factory, log),
		serviceaccount.New(client(rbac.ServiceAccountController), factory, log),
		rootca.New(client(rbac.RootCAPublisher), factory, log, []byte(ca)),
		podgc.New(client(rbac.PodGarbageCollector), factory, log, podgc.DefaultThreshold),
		nodelifecycle.New(client(rbac.NodeController), factory, log),
		bookkeeping.New(client(rbac.DebugRunController), records, factory, log, mostRecords),
		roleaggregation.New(client(rbac.RoleAggregation), factory, log),
		certificates.New(client(rbac.CertificateController), factory, log, server.CA(), certificates.Longest),
		bootstraptokens.New(client(rbac.TokenCleaner), log),
		loadbalancer.New(client(rbac.LoadBalancer), factory, machinePool(), log),
	}
	factory.Start(ctx.Done())
	ended := make(chan error, len(all))
	for _, c := range all {
		go func() { ended <- c.Run(ctx) }()
	}
	return func() {
		for range all {
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Error("a controller does not end")
				return
			}
		}
		factory.Shutdown()
	}
}

// newNode registers a node that is ready, under a name of its own.
func newNode(t *testing.T, client kubernetes.Interface, cpu string) (name string) {
	t.Helper()
	ctx := context.Background()
	name = "node-" + rand.String(6)
	node, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"only": name}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	t.Cleanup(func() {
		if err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("node %s stays: %v", name, err)
		}
	})
	for {
		_, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		if err == nil {
			return name
		}
		// The taint for not being ready yet got in between.
		status := node.Status
		if node, err = client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		node.Status = status
	}
}

func newNamespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	ns, err := client.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// newPod creates a pod for a node of newNode.
func newPod(t *testing.T, client kubernetes.Interface, namespace, name, node, cpu string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	pod.Spec.NodeSelector = map[string]string{"only": node}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/x", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}
	// The account may take a moment to appear in a new namespace.
	for deadline := time.Now().Add(10 * time.Second); ; {
		got, err := client.CoreV1().Pods(namespace).Create(context.Background(), pod, metav1.CreateOptions{})
		if err == nil {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		waitFor(t, client, namespace, "serviceaccounts", func(watch.Event) bool { return true })
	}
}

// watcher is what waitFor watches by.
type watcher interface {
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// waitFor returns when an object of a resource, as it is or as it comes to be, satisfies is.
func waitFor(t *testing.T, client kubernetes.Interface, namespace, resource string, is func(watch.Event) bool) {
	t.Helper()
	core := client.CoreV1()
	from := map[string]watcher{
		"pods": core.Pods(namespace), "serviceaccounts": core.ServiceAccounts(namespace), "configmaps": core.ConfigMaps(namespace),
		"namespaces": core.Namespaces(), "events": core.Events(namespace), "nodes": core.Nodes(),
	}[resource]
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	w, err := from.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if is(e) {
			return
		}
	}
	t.Fatalf("waited in vain for %s in %q", resource, namespace)
}
