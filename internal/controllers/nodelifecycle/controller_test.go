// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

// TestSilence: PL-13, a node that renews its lease stays; one that does not is unknown after the grace, and is taken
// back when it speaks again.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
		client := fake.NewClientset(node)
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(client, 0)
		c := New(client, factory, slog.New(slog.DiscardHandler))
		factory.Start(ctx.Done())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()

		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "one"}}
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
		if _, err := leases.Create(ctx, lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			time.Sleep(10 * time.Second)
			lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
			if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, client, corev1.ConditionTrue, "")
		time.Sleep(Grace - time.Second)
		expect(t, client, corev1.ConditionTrue, "")
		time.Sleep(2 * time.Second)
		expect(t, client, corev1.ConditionUnknown, corev1.TaintNodeUnreachable)

		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		back := get(t, client)
		back.Status.Conditions = node.Status.Conditions
		back.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
		if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, back, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect(t, client, corev1.ConditionTrue, "")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		factory.Shutdown()
	})
}

// TestClockSetBack: RS-05: a node whose clock was set back by an hour goes on being alive. Before, it was unknown until its clock had
// come to where it had been.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "one"}}
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		client := fake.NewClientset(node, lease)
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(client, 0)
		c := New(client, factory, slog.New(slog.DiscardHandler))
		factory.Start(ctx.Done())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		for range 20 {
			time.Sleep(10 * time.Second)
			lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-time.Hour)))
			if _, err := client.CoordinationV1().Leases(lease.Namespace).Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			expect(t, client, corev1.ConditionTrue, "")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		factory.Shutdown()
	})
}

func get(t *testing.T, client kubernetes.Interface) *corev1.Node {
	t.Helper()
	node, err := client.CoreV1().Nodes().Get(context.Background(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func expect(t *testing.T, client kubernetes.Interface, ready corev1.ConditionStatus, taint string) {
	t.Helper()
	synctest.Wait()
	node := get(t, client)
	if got := status(node, corev1.NodeReady); got != ready {
		t.Errorf("Ready is %s, want %s", got, ready)
	}
	got := ""
	for _, x := range node.Spec.Taints {
		got += x.Key
	}
	if got != taint {
		t.Errorf("taints %q, want %q", got, taint)
	}
}
