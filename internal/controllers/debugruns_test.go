// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// mostRecords is how many records of a namespace the tests' controller keeps.
const mostRecords = 5

// waitForRecords returns the records of a namespace when they are as wanted.
func waitForRecords(t *testing.T, namespace string, are func([]debugrun.DebugRun) bool) []debugrun.DebugRun {
	t.Helper()
	c, err := debugrun.NewClient(server.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	var list *debugrun.DebugRunList
	for {
		if list, err = c.List(ctx, namespace, metav1.ListOptions{}); err != nil {
			t.Fatalf("records of %s: %v, last %+v", namespace, err, list)
		}
		if are(list.Items) {
			return list.Items
		}
		w, err := c.ListWatch().Watch(metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.ResultChan():
		case <-ctx.Done():
		}
		w.Stop()
	}
}

func addDebug(t *testing.T, client kubernetes.Interface, namespace, pod, name string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"ephemeralContainers":[{"name":%q,"image":"example.com/tools"}]}}`, name)
	if _, err := client.CoreV1().Pods(namespace).Patch(context.Background(), pod, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "ephemeralcontainers"); err != nil {
		t.Fatal(err)
	}
}

// TestDebugRuns: DC-08, DC-11, records follow what becomes of debug containers, are finished when the pod goes, and go when there
// are too many of them or their namespace goes.
func TestDebugRuns(t *testing.T) {
	client := start(t)
	ctx := context.Background()
	node := newNode(t, client, "4")
	ns := newNamespace(t, client)
	pod := newPod(t, client, ns, "p", node, "100m")
	waitFor(t, client, ns, "pods", scheduledTo(node, "p"))
	addDebug(t, client, ns, "p", "one")
	addDebug(t, client, ns, "p", "two")

	now := metav1.Now().Rfc3339Copy()
	status := fmt.Appendf(nil, `{"status":{"phase":"Running","ephemeralContainerStatuses":[
		{"name":"one","image":"x","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":4,"reason":"Error","startedAt":%[1]q,"finishedAt":%[1]q}}},
		{"name":"two","image":"x","imageID":"","ready":false,"restartCount":0,"state":{"running":{"startedAt":%[1]q}}}]}}`, now.UTC().Format(time.RFC3339))
	if _, err := client.CoreV1().Pods(ns).Patch(ctx, "p", types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	byName := func(runs []debugrun.DebugRun) map[string]debugrun.DebugRunStatus {
		m := map[string]debugrun.DebugRunStatus{}
		for _, r := range runs {
			m[r.Spec.Container] = r.Status
		}
		return m
	}
	waitForRecords(t, ns, func(runs []debugrun.DebugRun) bool {
		one, two := byName(runs)["one"], byName(runs)["two"]
		return one.ExitCode != nil && *one.ExitCode == 4 && one.FinishedAt.Equal(&now) && two.StartedAt.Equal(&now) && two.FinishedAt == nil
	})
	kill(t, client, ns, pod.Name)
	waitForRecords(t, ns, func(runs []debugrun.DebugRun) bool {
		two := byName(runs)["two"]
		return len(runs) == 2 && two.FinishedAt != nil && two.Reason == debugrun.PodGone && two.StartedAt.Equal(&now)
	})

	newPod(t, client, ns, "q", node, "100m")
	waitFor(t, client, ns, "pods", scheduledTo(node, "q"))
	for i := range mostRecords - 1 {
		addDebug(t, client, ns, "q", fmt.Sprint("more-", i))
	}
	kill(t, client, ns, "q")
	waitForRecords(t, ns, func(runs []debugrun.DebugRun) bool {
		return len(runs) == mostRecords && len(byName(runs)) == mostRecords
	})

	if err := client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, client, "", "namespaces", func(e watch.Event) bool {
		if n, ok := e.Object.(*corev1.Namespace); ok && n.Name == ns && e.Type == watch.Deleted {
			return true
		}
		_, err := client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	waitForRecords(t, ns, func(runs []debugrun.DebugRun) bool { return len(runs) == 0 })
}
