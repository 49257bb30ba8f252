// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// asks has a pod of a priority ask for CPUs.
func asks(priority int32, cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Priority = &priority
		p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	}
}

// TestPreemption: WL-07, a pod of lower priority goes once, and is told why; its node is promised, and nobody who comes
// meanwhile gets what becomes free.
func TestPreemption(t *testing.T) {
	bound := map[string]int{}
	within(t, func(pod string) error { bound[pod]++; return nil }, func(client *fake.Clientset) {
		ctx := context.Background()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		if _, err := client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		var deleted []string
		client.PrependReactor("delete", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
			deleted = append(deleted, a.(k8stesting.DeleteAction).GetName())
			return true, nil, nil // it takes its time to end
		})
		create(t, client, "low", func(p *corev1.Pod) { asks(1, "800m")(p); p.Spec.NodeName = "one" })
		create(t, client, "other", func(p *corev1.Pod) { asks(1, "200m")(p); p.Spec.NodeName = "one" })
		synctest.Wait()
		create(t, client, "high", asks(10, "500m"))
		synctest.Wait()
		if len(deleted) != 1 || deleted[0] != "low" {
			t.Fatalf("gone: %v", deleted)
		}
		low := pod(t, client, "low")
		if c := low.Status.Conditions; len(c) != 1 || c[0].Type != corev1.DisruptionTarget ||
			c[0].Reason != corev1.PodReasonPreemptionByScheduler {
			t.Errorf("conditions of who goes: %+v", c)
		}
		if high := pod(t, client, "high"); high.Status.NominatedNodeName != "one" {
			t.Errorf("promised node %q", high.Status.NominatedNodeName)
		}
		low.DeletionTimestamp = ptr.To(metav1.Now())
		if err := client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), low, "default"); err != nil {
			t.Fatal(err)
		}
		create(t, client, "again", asks(1, "400m"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(deleted) != 1 || len(bound) != 0 {
			t.Errorf("while it is going: gone %v, bound %v", deleted, bound)
		}
		if err := client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "default",
			"low"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if bound["high"] != 1 || bound["again"] != 0 {
			t.Errorf("bound %v", bound)
		}
	})
}

func pod(t *testing.T, client *fake.Clientset, name string) *corev1.Pod {
	t.Helper()
	p, err := client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPreemptionMindsBudgets: WL-07, of two that would do the one goes that no disruption budget protects; budgets that
// cannot be read are asked for again, and nobody goes meanwhile.
func TestPreemptionMindsBudgets(t *testing.T) {
	within(t, func(string) error { return nil }, func(client *fake.Clientset) {
		ctx := context.Background()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		if _, err := client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		failing, deleted := true, []string{}
		client.PrependReactor("list", "poddisruptionbudgets", func(k8stesting.Action) (bool, runtime.Object, error) {
			if failing {
				return true, nil, errors.New("not now")
			}
			return true, &policyv1.PodDisruptionBudgetList{Items: []policyv1.PodDisruptionBudget{{
				ObjectMeta: metav1.ObjectMeta{Name: "keep", Namespace: "default"},
				Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"kept": "yes"}}}}}}, nil
		})
		client.PrependReactor("delete", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
			deleted = append(deleted, a.(k8stesting.DeleteAction).GetName())
			return true, nil, nil
		})
		create(t, client, "kept", func(p *corev1.Pod) {
			asks(1, "500m")(p)
			p.Spec.NodeName, p.Labels = "one", map[string]string{"kept": "yes"}
		})
		create(t, client, "free", func(p *corev1.Pod) { asks(5, "500m")(p); p.Spec.NodeName = "one" })
		synctest.Wait()
		create(t, client, "high", asks(10, "500m"))
		synctest.Wait()
		if len(deleted) != 0 {
			t.Fatalf("gone before the budgets are known: %v", deleted)
		}
		failing = false
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(deleted) != 1 || deleted[0] != "free" {
			t.Errorf("gone: %v", deleted)
		}
	})
}
