// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/controllers/rootca"
	"github.com/wherryproject/wherry/internal/controllers/serviceaccount"
)

func scheduledTo(node, pod string) func(watch.Event) bool {
	return func(e watch.Event) bool {
		p, ok := e.Object.(*corev1.Pod)
		return ok && p.Name == pod && p.Spec.NodeName == node
	}
}

func kill(t *testing.T, client kubernetes.Interface, namespace, name string) {
	t.Helper()
	if err := client.CoreV1().Pods(namespace).Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
}

// TestScheduler: PL-01 (PodScheduled), PL-15 (why a pod waits).
func TestScheduler(t *testing.T) {
	client := start(t)
	ctx := context.Background()
	node := newNode(t, client, "2")
	ns := newNamespace(t, client)
	t.Run("PL-01 a pod that fits is bound, and events say so", func(t *testing.T) {
		newPod(t, client, ns, "first", node, "1")
		waitFor(t, client, ns, "pods", scheduledTo(node, "first"))
		waitFor(t, client, ns, "events", func(e watch.Event) bool {
			ev, ok := e.Object.(*corev1.Event)
			return ok && ev.Reason == "Scheduled" && ev.Message == "Successfully assigned "+ns+"/first to "+node && ev.Source.Component == "default-scheduler"
		})
	})
	t.Run("PL-15 one that does not fit says why, and goes when there is room", func(t *testing.T) {
		newPod(t, client, ns, "second", node, "1500m")
		why := ""
		waitFor(t, client, ns, "pods", func(e watch.Event) bool {
			p := e.Object.(*corev1.Pod)
			i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
			})
			if p.Name != "second" || i < 0 {
				return false
			}
			why = p.Status.Conditions[i].Message
			return true
		})
		// Other tests' nodes may be there too.
		if !strings.Contains(why, " nodes are available: ") || !strings.Contains(why, "1 Insufficient cpu") {
			t.Errorf("message %q", why)
		}
		waitFor(t, client, ns, "events", func(e watch.Event) bool {
			ev, ok := e.Object.(*corev1.Event)
			return ok && ev.Reason == "FailedScheduling" && ev.Type == corev1.EventTypeWarning && strings.Contains(ev.Message, "Insufficient cpu")
		})
		kill(t, client, ns, "first")
		waitFor(t, client, ns, "pods", scheduledTo(node, "second"))
		kill(t, client, ns, "second")
	})
	t.Run("PL-15 a cordoned node takes pods again when it is not", func(t *testing.T) {
		cordon := func(on bool) {
			patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, on)
			if _, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			waitFor(t, client, "", "nodes", func(e watch.Event) bool {
				n := e.Object.(*corev1.Node)
				has := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
				return n.Name == node && has == on
			})
		}
		cordon(true)
		newPod(t, client, ns, "third", node, "1")
		waitFor(t, client, ns, "events", func(e watch.Event) bool {
			ev, ok := e.Object.(*corev1.Event)
			return ok && ev.InvolvedObject.Name == "third" && ev.Reason == "FailedScheduling"
		})
		cordon(false)
		waitFor(t, client, ns, "pods", scheduledTo(node, "third"))
		kill(t, client, ns, "third")
	})
	t.Run("pods created together are not placed beyond the node", func(t *testing.T) {
		for i := range 5 {
			newPod(t, client, ns, fmt.Sprint("many-", i), node, "900m")
		}
		waitFor(t, client, ns, "pods", func(watch.Event) bool {
			pods, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			placed, refused := 0, 0
			for _, p := range pods.Items {
				if p.Spec.NodeName != "" {
					placed++
				} else if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }) {
					refused++
				}
			}
			if placed > 2 {
				t.Fatalf("%d pods of 900m on a node of 2", placed)
			}
			return placed == 2 && refused == 3
		})
	})
}

// TestBindingLatency measures from the pod's first event to that of its binding, as another watcher sees them.
func TestBindingLatency(t *testing.T) {
	client := start(t)
	node := newNode(t, client, "64")
	ns := newNamespace(t, client)
	newPod(t, client, ns, "warm", node, "1m")
	waitFor(t, client, ns, "pods", scheduledTo(node, "warm"))
	w, err := client.CoreV1().Pods(ns).Watch(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var took []time.Duration
	for i := range 20 {
		name := fmt.Sprint("p", i)
		newPod(t, client, ns, name, node, "1m")
		var seen time.Time
		for e := range w.ResultChan() {
			p := e.Object.(*corev1.Pod)
			if p.Name != name {
				continue
			}
			if e.Type == watch.Added {
				seen = time.Now()
			}
			if p.Spec.NodeName != "" {
				took = append(took, time.Since(seen))
				break
			}
		}
	}
	slices.Sort(took)
	t.Logf("event to binding: median %v, worst %v", took[len(took)/2], took[len(took)-1])
	if median := took[len(took)/2]; median > 100*time.Millisecond {
		t.Errorf("binding takes %v", median)
	}
}

func TestNamespaceContent(t *testing.T) {
	client := start(t)
	ctx := context.Background()
	ns := newNamespace(t, client)
	account := func(e watch.Event) bool {
		o, ok := e.Object.(*corev1.ServiceAccount)
		return ok && e.Type != watch.Deleted && o.Name == serviceaccount.Name
	}
	root := func(e watch.Event) bool {
		o, ok := e.Object.(*corev1.ConfigMap)
		return ok && e.Type != watch.Deleted && o.Name == rootca.Name && o.Data[rootca.Key] == ca && len(o.Data) == 1
	}
	waitFor(t, client, ns, "serviceaccounts", account)
	waitFor(t, client, ns, "configmaps", root)
	if err := client.CoreV1().ServiceAccounts(ns).Delete(ctx, serviceaccount.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, client, ns, "serviceaccounts", account)
	if err := client.CoreV1().ConfigMaps(ns).Delete(ctx, rootca.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, client, ns, "configmaps", root)
	patch := []byte(`{"data":{"ca.crt":"forged","more":"x"}}`)
	if _, err := client.CoreV1().ConfigMaps(ns).Patch(ctx, rootca.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, client, ns, "configmaps", root)
	if _, err := client.CoreV1().ConfigMaps("kube-system").Get(ctx, rootca.Name, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// TestNamespaceDeletion: PL-10, pods end with their grace before the rest goes.
// ATTACK C33.
func TestNamespaceDeletion(t *testing.T) {
	client := start(t)
	ctx := context.Background()
	node := newNode(t, client, "2")
	ns := newNamespace(t, client)
	newPod(t, client, ns, "worker", node, "1m")
	waitFor(t, client, ns, "pods", scheduledTo(node, "worker"))
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}
	if _, err := client.CoreV1().ConfigMaps(ns).Create(ctx, held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "needed"}}
	if _, err := client.CoreV1().Secrets(ns).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	remaining := func(want string) func(watch.Event) bool {
		return func(e watch.Event) bool {
			n := e.Object.(*corev1.Namespace)
			return n.Name == ns && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NamespaceCondition) bool {
				return c.Type == corev1.NamespaceContentRemaining && c.Status == corev1.ConditionTrue && strings.Contains(c.Message, want)
			})
		}
	}
	waitFor(t, client, "", "namespaces", remaining("pods. has 1 resource instances"))
	pod, err := client.CoreV1().Pods(ns).Get(ctx, "worker", metav1.GetOptions{})
	if err != nil || pod.DeletionTimestamp == nil || ptr.Deref(pod.DeletionGracePeriodSeconds, 0) != 30 {
		t.Fatalf("the pod is not ending with its grace: %v %v", pod.ObjectMeta, err)
	}
	if _, err := client.CoreV1().Secrets(ns).Get(ctx, "needed", metav1.GetOptions{}); err != nil {
		t.Errorf("a secret went before the pod that may need it: %v", err)
	}
	kill(t, client, ns, "worker") // as the node's agent does when the pod is over
	waitFor(t, client, "", "namespaces", remaining("configmaps. has 1 resource instances"))
	if _, err := client.CoreV1().Secrets(ns).Get(ctx, "needed", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the secret is still there: %v", err)
	}
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client.CoreV1().ConfigMaps(ns).Patch(ctx, "held", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	gone(t, client, ns)
}

// gone waits for the end of a namespace.
func gone(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	w, err := client.CoreV1().Namespaces().Watch(context.Background(), metav1.ListOptions{FieldSelector: "metadata.name=" + name, TimeoutSeconds: ptr.To[int64](20)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := client.CoreV1().Namespaces().Get(context.Background(), name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		return
	}
	for e := range w.ResultChan() {
		if e.Type == watch.Deleted {
			return
		}
	}
	t.Fatalf("namespace %s does not go", name)
}

// TestEmptyNamespaceGoesAtOnce: nothing in it takes time.
func TestEmptyNamespaceGoesAtOnce(t *testing.T) {
	client := start(t)
	ns := newNamespace(t, client)
	waitFor(t, client, ns, "configmaps", func(watch.Event) bool { return true })
	began := time.Now()
	if err := client.CoreV1().Namespaces().Delete(context.Background(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone(t, client, ns)
	t.Logf("gone after %v", time.Since(began))
}
