// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestWatchThatIsStopped proves RS-01: a watch whose client has gone leaves nothing behind, also if an event was on its way just then.
// The bubble ends only when all of its goroutines have.
func TestWatchThatIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := watch.NewFakeWithChanSize(1, false)
		w := explain(from)
		from.Add(&corev1.Pod{})
		synctest.Wait()
		w.Stop()
		w.Stop()
	})
}

// TestWatchFromTooLongAgo: a change whose state before it was compacted away makes a client list again.
func TestWatchFromTooLongAgo(t *testing.T) {
	from := watch.NewFakeWithChanSize(2, false)
	w := explain(from)
	defer w.Stop()
	from.Add(&corev1.Pod{})
	from.Error(&metav1.Status{Message: "etcd event received with PrevKv=nil"})
	if e := <-w.ResultChan(); e.Type != watch.Added {
		t.Errorf("first: %+v", e)
	}
	if e := <-w.ResultChan(); e.Type != watch.Error || e.Object.(*metav1.Status).Reason != metav1.StatusReasonExpired {
		t.Errorf("second: %+v", e)
	}
}
