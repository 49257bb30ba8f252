// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/features"
)

// within runs the scheduler in a bubble of its own time, with an API whose bindings the test answers.
func within(t *testing.T, bind func(pod string) error, do func(*fake.Clientset)) {
	t.Helper()
	withGates(t, nil, bind, do)
}

func withGates(t *testing.T, gates *features.Gates, bind func(pod string) error, do func(*fake.Clientset)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
		client.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
			if a.GetSubresource() != "binding" {
				return false, nil, nil
			}
			return true, nil, bind(a.(k8stesting.CreateAction).GetObject().(*corev1.Binding).Name)
		})
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(client, 0)
		s := New(client, factory, gates, slog.New(slog.DiscardHandler))
		factory.Start(ctx.Done())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		do(client)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		factory.Shutdown()
		time.Sleep(time.Hour) // client-go's recorders end when they have given up
	})
}

func create(t *testing.T, client *fake.Clientset, name string, change func(*corev1.Pod)) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	if change != nil {
		change(pod)
	}
	if _, err := client.CoreV1().Pods("default").Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestBindingIsRetried: a binding that fails is tried again, later and later; the first comes without delay.
func TestBindingIsRetried(t *testing.T) {
	var at []time.Duration
	var began time.Time
	within(t, func(string) error {
		at = append(at, time.Since(began))
		if len(at) < 4 {
			return errors.New("the store is away")
		}
		return nil
	}, func(client *fake.Clientset) {
		began = time.Now()
		create(t, client, "p", nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []time.Duration{0, firstRetry, 3 * firstRetry, 7 * firstRetry}
		if len(at) != len(want) {
			t.Fatalf("bindings at %v, want %v", at, want)
		}
		for i := range want {
			if at[i] != want[i] {
				t.Errorf("bindings at %v, want %v", at, want)
				break
			}
		}
	})
}

// TestNotOurs: pods that are gated, deleted or another scheduler's are left alone; a gate's end is noticed.
func TestNotOurs(t *testing.T) {
	bound := map[string]int{}
	within(t, func(pod string) error { bound[pod]++; return nil }, func(client *fake.Clientset) {
		create(t, client, "foreign", func(p *corev1.Pod) { p.Spec.SchedulerName = "other" })
		create(t, client, "over", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		create(t, client, "gated",
			func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/g"}} })
		create(t, client, "leaving", func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.Now()), []string{"example.com/f"}
		})
		synctest.Wait()
		if len(bound) != 0 {
			t.Errorf("bound %v", bound)
		}
		pod, err := client.CoreV1().Pods("default").Get(context.Background(), "gated", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Spec.SchedulingGates = nil
		if _, err := client.CoreV1().Pods("default").Update(context.Background(), pod,
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if bound["gated"] != 1 || len(bound) != 1 {
			t.Errorf("bound %v", bound)
		}
	})
}

// TestFeatureOff: SC-18 a pod that needs a feature that is off stays unschedulable, and says so; others are bound.
func TestFeatureOff(t *testing.T) {
	gates, err := features.New(map[string]bool{"SidecarContainers": false})
	if err != nil {
		t.Fatal(err)
	}
	bound := map[string]int{}
	withGates(t, gates, func(pod string) error { bound[pod]++; return nil }, func(client *fake.Clientset) {
		create(t, client, "plain", nil)
		create(t, client, "sidecar", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "proxy",
				RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
		})
		synctest.Wait()
		if bound["plain"] != 1 || bound["sidecar"] != 0 {
			t.Errorf("bound %v", bound)
		}
		pod, err := client.CoreV1().Pods("default").Get(context.Background(), "sidecar", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		const want = "not scheduling the pod: spec.initContainers[0].restartPolicy needs the feature gate SidecarContainers, which is off at the scheduler"
		if c := pod.Status.Conditions; len(c) != 1 || c[0].Type != corev1.PodScheduled ||
			c[0].Status != corev1.ConditionFalse || c[0].Message != want {
			t.Errorf("conditions %+v", c)
		}
	})
}
