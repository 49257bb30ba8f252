// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/work"
)

// forgetful counts the removals of records, and the looks at the node.
type forgetful struct {
	stub
	forgot, looked atomic.Int32
}

func (f *forgetful) Observe(context.Context, *corev1.Pod) (plan.Seen, error) {
	f.looked.Add(1)
	return plan.Seen{}, nil
}

func (f *forgetful) Forget(context.Context, *corev1.Pod) error {
	f.forgot.Add(1)
	return nil
}

// TestForgottenPods: the removal of a record is heard of in two steps, of which the first one, a version with no grace left, makes
// no work again (PL-10).
func TestForgottenPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		node := &forgetful{stub: stub{save: func(_ int, pod *corev1.Pod, to *corev1.PodStatus) (*corev1.Pod, error) {
			now := pod.DeepCopy()
			now.Status = *to
			return now, nil
		}}}
		set := work.NewSet(ctx, node, slog.New(slog.DiscardHandler))
		p := gated(1)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, new(int64)
		set.Update(p)
		time.Sleep(time.Minute)
		if n := node.forgot.Load(); n != 1 || set.Has(p.UID) {
			t.Fatalf("record removed %d times, worker there: %v", n, set.Has(p.UID))
		}
		later := p.DeepCopy()
		later.ResourceVersion = "2"
		set.Update(later)
		time.Sleep(time.Minute)
		if n := node.forgot.Load(); n != 1 || set.Has(p.UID) {
			t.Errorf("record removed %d times after it was forgotten, worker there: %v", n, set.Has(p.UID))
		}
		looked := node.looked.Load()
		set.Adopt(p)
		time.Sleep(time.Minute)
		if node.looked.Load() == looked {
			t.Error("nobody takes down what appeared on the node")
		}
		set.Remove(p.UID)
		set.Update(later) // after the removal was heard of nothing is held against a pod
		time.Sleep(time.Minute)
		if n := node.forgot.Load(); n != 2 {
			t.Errorf("record removed %d times, want 2", n)
		}
		cancel()
		set.Wait()
	})
}
