// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/node/work"
)

// passes is a meter that keeps the kinds of passes.
type passes struct {
	mu        sync.Mutex
	kinds     []string
	decisions int
}

func (p *passes) Decided(time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decisions++
}

func (p *passes) Passed(kind string, _ time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.kinds, kind) {
		p.kinds = append(p.kinds, kind)
	}
}

// TestMeter: a set's workers are measured, each pass by what it was for.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		node := &stub{save: func(n int, pod *corev1.Pod, to *corev1.PodStatus) (*corev1.Pod, error) {
			out := *pod
			out.Status = *to.DeepCopy()
			return &out, nil
		}}
		m := &passes{}
		set := work.NewSet(ctx, node, slog.New(slog.DiscardHandler))
		set.Meter = m
		step := func(change func()) {
			change()
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		step(func() { set.Update(gated(1)) })
		step(func() { set.Nudge("") })
		step(func() { set.Update(gated(2)) })
		step(func() {
			p := gated(3)
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now().Add(time.Minute)}, new(int64(60))
			set.Update(p)
		})
		cancel()
		set.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		if want := []string{"create", "sync", "update", "kill"}; !slices.Equal(m.kinds, want) {
			t.Errorf("passes %v, want %v", m.kinds, want)
		}
		if m.decisions < len(m.kinds) {
			t.Errorf("%d decisions", m.decisions)
		}
	})
}
