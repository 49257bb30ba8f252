// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// BenchmarkCreatePods makes pods with 32 clients, over TLS and in memory.
func BenchmarkCreatePods(b *testing.B) {
	for name, c := range map[string]*kubernetes.Clientset{"TLS": client(b),
		"loopback": clientOf(b, shared.srv.Loopback())} {
		b.Run(name, func(b *testing.B) { createPods(b, c) })
	}
}

// createPods makes pods in a namespace of its own with 32 callers, and says how many a second.
func createPods(b *testing.B, c *kubernetes.Clientset) {
	ns := namespace(b, c)
	var n atomic.Int64
	b.SetParallelism(16)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := c.CoreV1().Pods(ns).Create(b.Context(), pod(fmt.Sprint("p", n.Add(1))),
				metav1.CreateOptions{}); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pods/s")
}

// BenchmarkCreateService makes services one after the other in memory, each with the IPAddress of its address.
func BenchmarkCreateService(b *testing.B) {
	c := clientOf(b, shared.srv.Loopback())
	ns := namespace(b, c)
	for n := 0; b.Loop(); n++ {
		if _, err := c.CoreV1().Services(ns).Create(b.Context(), service(fmt.Sprint("s", n)),
			metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGetPod reads one pod over and over in memory.
func BenchmarkGetPod(b *testing.B) {
	c := clientOf(b, shared.srv.Loopback())
	ns := namespace(b, c)
	createPod(b, c, ns, pod("p"))
	var last *corev1.Pod
	for b.Loop() {
		p, err := c.CoreV1().Pods(ns).Get(b.Context(), "p", metav1.GetOptions{})
		if err != nil {
			b.Fatal(err)
		}
		last = p
	}
	_ = last
}
