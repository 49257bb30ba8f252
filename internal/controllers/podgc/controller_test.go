// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

// within runs the controller over objects in a bubble of its own time; that the bubble ends proves that Run leaves
// nothing behind.
func within(t *testing.T, threshold int, objects []runtime.Object, do func(kubernetes.Interface)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects...)
		factory := informers.NewSharedInformerFactory(client, 0)
		ctx, cancel := context.WithCancel(t.Context())
		c := New(client, factory, slog.New(slog.DiscardHandler), threshold)
		factory.Start(ctx.Done())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		do(client)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		factory.Shutdown()
	})
}

func pod(name, node string, phase corev1.PodPhase, age time.Duration) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

func names(t *testing.T, client kubernetes.Interface) []string {
	t.Helper()
	pods, err := client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range pods.Items {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}

func want(t *testing.T, client kubernetes.Interface, pods ...string) {
	t.Helper()
	synctest.Wait()
	if got := names(t, client); !slices.Equal(got, pods) {
		t.Errorf("pods %v, want %v", got, pods)
	}
}

// TestOrphans: PL-10, nothing holds up a pod whose node is gone; not at once, though.
func TestOrphans(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	objects := []runtime.Object{node, pod("kept", "one", corev1.PodRunning, 0), pod("lost", "gone", corev1.PodRunning, 0), pod("waits", "", corev1.PodPending, 0)}
	t.Run("after the quarantine", func(t *testing.T) {
		within(t, 10, objects, func(client kubernetes.Interface) {
			time.Sleep(Quarantine - time.Second)
			want(t, client, "kept", "lost", "waits")
			time.Sleep(2 * time.Second)
			want(t, client, "kept", "waits")
		})
	})
	t.Run("not when the node comes back", func(t *testing.T) {
		within(t, 10, objects, func(client kubernetes.Interface) {
			time.Sleep(Quarantine / 2)
			back := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}
			if _, err := client.CoreV1().Nodes().Create(context.Background(), back, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * Quarantine)
			want(t, client, "kept", "lost", "waits")
		})
	})
	t.Run("of a node that is deleted now", func(t *testing.T) {
		within(t, 10, objects, func(client kubernetes.Interface) {
			time.Sleep(10 * Quarantine)
			if err := client.CoreV1().Nodes().Delete(context.Background(), "one", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(Quarantine - time.Second)
			want(t, client, "kept", "waits")
			time.Sleep(2 * time.Second)
			want(t, client, "waits")
		})
	})
}

func TestUnscheduledAndDeleted(t *testing.T) {
	deleted := pod("deleted", "", corev1.PodPending, 0)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)}
	deleted.Finalizers = []string{"example.com/x"} // the fake keeps no deleted object without
	within(t, 10, []runtime.Object{deleted, pod("other", "", corev1.PodPending, 0)}, func(client kubernetes.Interface) {
		want(t, client, "other")
	})
}

func TestThreshold(t *testing.T) {
	objects := []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, pod("running", "one", corev1.PodRunning, 100*time.Hour)}
	for i := range 4 {
		objects = append(objects, pod(fmt.Sprint("ended-", i), "one", corev1.PodSucceeded, time.Duration(i)*time.Hour))
	}
	within(t, 3, objects, func(client kubernetes.Interface) {
		want(t, client, "ended-0", "ended-1", "ended-2", "running") // the oldest went
		if _, err := client.CoreV1().Pods("default").Create(context.Background(), pod("ended-new", "one", corev1.PodFailed, 0), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		want(t, client, "ended-0", "ended-1", "ended-new", "running")
	})
}
