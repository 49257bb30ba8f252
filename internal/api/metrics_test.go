// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/ptr"
)

// meteredNode is a node whose pods each have a container main that uses half a processor and 64 MiB.
type meteredNode struct {
	*debugNode
	asked atomic.Int32
	mu    sync.Mutex
	pods  []*corev1.Pod
}

func newMeteredNode(t *testing.T) *meteredNode {
	t.Helper()
	n := &meteredNode{debugNode: newDebugNode(t)}
	began := time.Now()
	n.answer("stats", func(w http.ResponseWriter, _ *http.Request) {
		n.asked.Add(1)
		cpu := &statsapi.CPUStats{UsageCoreNanoSeconds: ptr.To(uint64(time.Since(began) / 2))}
		memory := &statsapi.MemoryStats{WorkingSetBytes: ptr.To[uint64](64 << 20)}
		s := statsapi.Summary{Node: statsapi.NodeStats{CPU: cpu, Memory: memory}}
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, p := range n.pods {
			s.Pods = append(s.Pods, statsapi.PodStats{
				PodRef: statsapi.PodReference{Name: p.Name, Namespace: p.Namespace, UID: string(p.UID)},
				Containers: []statsapi.ContainerStats{{Name: "main", StartTime: metav1.NewTime(began.Add(-time.Hour)),
					CPU: cpu, Memory: memory}},
			})
		}
		_ = json.NewEncoder(w).Encode(s)
	})
	return n
}

// run has a pod on the node that uses something.
func (n *meteredNode) run(t *testing.T, ns, name string, labels map[string]string) {
	t.Helper()
	p := pod(name)
	p.Labels = labels
	p = createPod(t, n.client, ns, p)
	if err := bindPod(t, n.client, p, n.name); err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods = append(n.pods, p)
}

// metrics.k8s.io tells what pods and nodes use, as rates over a window, by name and by selector; many clients cost one
// read of a node; what does not run is left out; kubectl top prints it.
func TestMetrics(t *testing.T) {
	n := newMeteredNode(t)
	ns := namespace(t, n.client)
	n.run(t, ns, "one", map[string]string{"app": "a"})
	n.run(t, ns, "two", map[string]string{"app": "b"})
	createPod(t, n.client, ns, pod("waiting"))
	list := func(path, query string) (out metricsv1beta1.PodMetricsList) {
		t.Helper()
		data, err := n.client.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1"+
			path).Param("labelSelector", query).SetHeader("Accept", "application/json").DoRaw(t.Context())
		if err == nil {
			err = json.Unmarshal(data, &out)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			if got := list("/namespaces/"+ns+"/pods", ""); len(got.Items) != 2 {
				t.Errorf("%d pods: %v", len(got.Items), got)
			}
		})
	}
	clients.Wait()
	if asked := n.asked.Load(); asked >= 8 { // 2, unless some came too late for the window of the others
		t.Errorf("the node was asked %d times by 8: not once for those who come together", asked)
	}
	all := list("/namespaces/"+ns+"/pods", "")
	one := all.Items[0]
	// The figure is exact but for what passed between the node's answer and its arrival.
	cpu := one.Containers[0].Usage.Cpu().AsApproximateFloat64()
	if one.Name != "one" || one.Labels["app"] != "a" || cpu < 0.05 || cpu > 5 ||
		one.Containers[0].Usage.Memory().String() != "64Mi" || one.Window.Duration < time.Second ||
		one.Timestamp.IsZero() {
		t.Errorf("pod one: %+v", one)
	}
	if got := list("/pods", "app=b"); len(got.Items) != 1 || got.Items[0].Name != "two" ||
		got.Items[0].Namespace != ns {
		t.Errorf("by label, in all namespaces: %+v", got)
	}
	for path, want := range map[string]bool{"pods/one": true, "pods/waiting": false, "pods/nobody": false} {
		err := n.client.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces/" + ns + "/" +
			path).Do(t.Context()).Error()
		if want != (err == nil) || !want && !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, step := range []struct {
		args string
		want []string
	}{
		{"top pod -n " + ns, []string{"NAME", "CPU(cores)", "MEMORY(bytes)", "one", "two", "64Mi"}},
		{"top pod one --containers -n " + ns, []string{"POD", "main", "64Mi"}},
		{"top pod -l app=b --sum -n " + ns, []string{"two", "64Mi"}},
		{"top node " + n.name, []string{n.name, "64Mi"}},
		{"get --raw /apis/metrics.k8s.io/v1beta1/nodes/" + n.name, []string{`"kind":"NodeMetrics"`, `"window":"`}},
		{"get pods.metrics.k8s.io -n " + ns, []string{"WINDOW", "64Mi"}},
		{"explain pods.containers --api-version metrics.k8s.io/v1beta1", []string{"usage"}},
	} {
		out := kubectl(t, "", strings.Fields(step.args)...)
		for _, want := range step.want {
			if !strings.Contains(out, want) {
				t.Errorf("kubectl %s lacks %q:\n%s", step.args, want, out)
			}
		}
	}
}

// A node that does not answer is missing, and the client is told; one pod's figures then are not available rather than
// not found.
func TestMetricsOfADeadNode(t *testing.T) {
	n := newMeteredNode(t)
	ns := namespace(t, n.client)
	n.run(t, ns, "one", nil)
	n.server.Close()
	config := adminConfig(t)
	said := &warned{}
	config.WarningHandler = said
	c := clientOf(t, config)
	var list metricsv1beta1.PodMetricsList
	data, err := c.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces/" + ns +
		"/pods").Do(t.Context()).Raw()
	if err != nil || json.Unmarshal(data, &list) != nil || len(list.Items) != 0 ||
		!said.has("no metrics for node "+n.name) {
		t.Errorf("list: %s, %v, %q", data, err, said.said)
	}
	err = c.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces/" + ns +
		"/pods/one").Do(t.Context()).Error()
	if !apierrors.IsServiceUnavailable(err) {
		t.Errorf("get: %v", err)
	}
}
