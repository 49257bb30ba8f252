// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/api"
)

// A server stops within seconds although clients watch, and the watches end.
func TestStopEndsWatches(t *testing.T) {
	s, stop := serve(t, api.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1",
		EtcdServers: []string{shared.etcd.Endpoint()}, EtcdPrefix: "/stop"})
	ended := make(chan struct{}, 2)
	for _, c := range []*kubernetes.Clientset{clientOf(t, configOf(t, s)), clientOf(t, s.Loopback())} {
		w, err := c.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range w.ResultChan() {
			}
			ended <- struct{}{}
		}()
	}
	began := time.Now()
	stop()
	took := time.Since(began)
	t.Logf("stopped in %v", took)
	if took > 30*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	for range 2 {
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("a watch did not end")
		}
	}
}
