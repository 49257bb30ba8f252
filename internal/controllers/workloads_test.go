// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/controllers/ondemand"
	"github.com/wherryproject/wherry/internal/controllers/workloads"
)

// crashes is made once: it is of the whole process.
var crashes = sync.OnceValue(ondemand.CatchCrashes)

// startWorkloads runs Kubernetes' own controllers until the test ends, each with its own rights alone; change may
// change how one reaches the server.
func startWorkloads(t *testing.T, change func(name string, c *rest.Config)) *ondemand.Manager {
	t.Helper()
	as := func(user string) *rest.Config {
		config, err := server.As(user)
		if err != nil {
			t.Fatal(err)
		}
		config.QPS = -1
		return config
	}
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(as(rbac.Controllers)), 0)
	m := ondemand.New(workloads.Controllers(), ondemand.Config{
		As: func(name string) (*rest.Config, error) {
			c, err := server.As(rbac.ControllerUser(name))
			if err == nil && change != nil {
				change(name, c)
			}
			return c, err
		},
		Looking: ondemand.Looking{Client: kubernetes.NewForConfigOrDie(as(rbac.Controllers)),
			Metadata: metadata.NewForConfigOrDie(as(rbac.Controllers))},
		Informers: factory, Firsts: server.Firsts(), Crashes: crashes(),
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			factory.Shutdown()
		case <-time.After(15 * time.Second):
			t.Error("the controllers do not end")
		}
	})
	return m
}

// goes is how long an object may take to go. It is no measure of the collector, only the end of a test that would fail. Its own pauses
// add up to more than half a minute on a machine that is busy: ten seconds until a new kind's informer is filled, a quarter of a second
// doubled six times until a custom resource is served, and the back-off of its queue.
const goes = 2 * time.Minute

// wentAway returns when an object is no longer there.
func wentAway(t *testing.T, w watcher, name string, get func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), goes)
	defer cancel()
	seen, err := w.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	if apierrors.IsNotFound(get(ctx)) {
		return
	}
	for e := range seen.ResultChan() {
		if e.Type == watch.Deleted {
			return
		}
	}
	if err := get(context.WithoutCancel(ctx)); !apierrors.IsNotFound(err) { // a watch may end before it has said all
		t.Fatalf("%s does not go: %v", name, err)
	}
}

// TestOwners: WL-04, what an object owns goes after it, before it, or is set free, as asked; also what a custom
// resource owns, and what an owner that is long gone has left.
func TestOwners(t *testing.T) {
	client := start(t)
	boats(t)
	startWorkloads(t, nil)
	ns := newNamespace(t, client)
	cms := client.CoreV1().ConfigMaps(ns)
	get := func(name string) func(context.Context) error {
		return func(ctx context.Context) error { _, err := cms.Get(ctx, name, metav1.GetOptions{}); return err }
	}
	owned := func(name string, owner metav1.OwnerReference) *corev1.ConfigMap {
		t.Helper()
		cm, err := cms.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name,
			OwnerReferences: []metav1.OwnerReference{owner}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return cm
	}
	ref := func(kind, version string, o metav1.Object) metav1.OwnerReference {
		blocks := true
		return metav1.OwnerReference{Kind: kind, APIVersion: version, Name: o.GetName(), UID: o.GetUID(),
			BlockOwnerDeletion: &blocks}
	}
	fleet := dynamic.NewForConfigOrDie(server.Loopback()).Resource(schema.GroupVersionResource{Group: "harbour.example.com", Version: "v1", Resource: "boats"}).Namespace(ns)
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground,
		metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			name := map[metav1.DeletionPropagation]string{metav1.DeletePropagationForeground: "f",
				metav1.DeletePropagationBackground: "b", metav1.DeletePropagationOrphan: "o"}[policy]
			boat,
				err := fleet.Create(t.Context(),
				&unstructured.Unstructured{Object: map[string]any{"apiVersion": "harbour.example.com/v1",
					"kind": "Boat", "metadata": map[string]any{"name": name}}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			child := owned(name+"-child", ref("Boat", "harbour.example.com/v1", boat))
			owned(name+"-grandchild", ref("ConfigMap", "v1", child))
			// The collector must have seen whose they are before the owner goes: it sees all in order, and this one's
			// owner is not there.
			owned(name+"-stray", metav1.OwnerReference{Kind: "ConfigMap", APIVersion: "v1", Name: "never",
				UID: types.UID("never-" + name)})
			wentAway(t, cms, name+"-stray", get(name+"-stray"))
			if err := fleet.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
				t.Fatal(err)
			}
			wentAway(t, fleet, name,
				func(ctx context.Context) error { _, err := fleet.Get(ctx, name, metav1.GetOptions{}); return err })
			if policy == metav1.DeletePropagationOrphan {
				left, err := cms.Get(t.Context(), name+"-child", metav1.GetOptions{})
				if err != nil || len(left.OwnerReferences) != 0 {
					t.Errorf("what was to be set free: %v, owners %v", err, left.OwnerReferences)
				}
				return
			}
			if policy == metav1.DeletePropagationForeground {
				if err := get(name + "-child")(t.Context()); !apierrors.IsNotFound(err) {
					t.Errorf("the owner went first: %v", err)
				}
			}
			wentAway(t, cms, name+"-child", get(name+"-child"))
			wentAway(t, cms, name+"-grandchild", get(name+"-grandchild"))
		})
	}
}

// noServices removes the services and endpoints that other tests have left: a controller that begins with the first is
// to find none, in whatever order the tests run, and however often.
func noServices(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	services, err := client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range services.Items {
		if s.Namespace == metav1.NamespaceDefault && s.Name == "kubernetes" {
			continue
		}
		if err := client.CoreV1().Services(s.Namespace).Delete(t.Context(), s.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	endpoints, err := client.CoreV1().Endpoints("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range endpoints.Items {
		if e.Labels[discoveryv1.LabelSkipMirror] == "true" { // those of service kubernetes
			continue
		}
		err := client.CoreV1().Endpoints(e.Namespace).Delete(t.Context(), e.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) { // it may go with its service
			t.Fatal(err)
		}
	}
}

// needed says whether a controller begins with what is there, without waiting until a manager has asked that.
func needed(t *testing.T, client kubernetes.Interface, name string) bool {
	t.Helper()
	for _, row := range workloads.Controllers() {
		for _, s := range row.Starts {
			if row.Name != name {
				continue
			}
			there, err := s.There(t.Context(), ondemand.Looking{Client: client})
			if err != nil {
				t.Fatal(err)
			}
			if there {
				return true
			}
		}
	}
	return false
}

// TestEndpointSlicesBegin: WL-06, the controller of EndpointSlices begins with the first Service that selects pods.
func TestEndpointSlicesBegin(t *testing.T) {
	client := start(t)
	noServices(t, client)
	m := startWorkloads(t, nil)
	ns := newNamespace(t, client)
	if needed(t, client, "endpointslice-controller") || m.Started("endpointslice-controller") {
		t.Error("it runs though only service kubernetes is there")
	}
	slices, err := client.DiscoveryV1().EndpointSlices(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer slices.Stop()
	_, err = client.CoreV1().Services(ns).Create(t.Context(),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"},
				Ports: []corev1.ServicePort{{Port: 80}}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-slices.ResultChan():
	case <-time.After(20 * time.Second):
		t.Fatal("no slice comes")
	}
}

// TestEndpointsAreMirrored: WL-06, WL-09, Endpoints that somebody keeps for a Service without a selector become slices, which it is
// carried by; those of service kubernetes alone begin nothing.
func TestEndpointsAreMirrored(t *testing.T) {
	client := start(t)
	noServices(t, client)
	m := startWorkloads(t, nil)
	ns := newNamespace(t, client)
	if needed(t, client, "endpointslicemirroring-controller") || m.Started("endpointslicemirroring-controller") {
		t.Error("it runs though there are only the Endpoints of service kubernetes")
	}
	slices, err := client.DiscoveryV1().EndpointSlices(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer slices.Stop()
	meta := metav1.ObjectMeta{Name: "database"}
	_, err = client.CoreV1().Services(ns).Create(t.Context(), &corev1.Service{ObjectMeta: meta,
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5432}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().Endpoints(ns).Create(t.Context(), &corev1.Endpoints{ObjectMeta: meta,
		Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.7"}},
			Ports: []corev1.EndpointPort{{Port: 5432}}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-slices.ResultChan():
		slice, ok := e.Object.(*discoveryv1.EndpointSlice)
		if !ok || slice.Labels[discoveryv1.LabelServiceName] != "database" ||
			len(slice.Endpoints) != 1 || slice.Endpoints[0].Addresses[0] != "192.0.2.7" {
			t.Errorf("slice %+v", e.Object)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no slice comes")
	}
}

// TestTaintsEvict: WL-06, WL-07, a taint NoExecute ends the pods of its node that do not tolerate it, and says why; no other taint begins
// the controller.
func TestTaintsEvict(t *testing.T) {
	client := start(t)
	m := startWorkloads(t, nil)
	ns := newNamespace(t, client)
	node, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "tainted"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.CoreV1().Nodes().Delete(context.Background(), node.Name, metav1.DeleteOptions{}) })
	pods := client.CoreV1().Pods(ns)
	for name, tolerations := range map[string][]corev1.Toleration{"goes": nil,
		"stays": {{Key: "b", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}} {
		_, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/keep"}},
			Spec: corev1.PodSpec{NodeName: node.Name, Tolerations: tolerations,
				Containers: []corev1.Container{{Name: "main", Image: "example.com/x"}}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	if m.Started("taint-eviction-controller") {
		t.Error("it runs though no taint drives pods away")
	}
	seen, err := pods.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=goes"})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	taint := []byte(`{"spec":{"taints":[{"key":"b","effect":"NoExecute"}]}}`)
	if _, err := client.CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, taint, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	timeout := time.After(20 * time.Second)
	for gone := false; !gone; {
		select {
		case e := <-seen.ResultChan():
			pod, ok := e.Object.(*corev1.Pod)
			if gone = ok && pod.DeletionTimestamp != nil; gone && (len(pod.Status.Conditions) == 0 ||
				!slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
					return c.Type == corev1.DisruptionTarget && c.Reason == "DeletionByTaintManager"
				})) {
				t.Errorf("it goes without a reason: %+v", pod.Status.Conditions)
			}
		case <-timeout:
			t.Fatal("the pod does not go")
		}
	}
	if stays, err := pods.Get(t.Context(), "stays", metav1.GetOptions{}); err != nil || stays.DeletionTimestamp != nil {
		t.Errorf("the pod that tolerates the taint goes: %v", err)
	}
	for _, name := range []string{"goes", "stays"} {
		free := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := pods.Patch(t.Context(), name, types.MergePatchType, free, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
}
