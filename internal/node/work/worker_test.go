// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/work"
)

// stub is a node on which every operation takes for ever, so that nothing but statuses is about.
type stub struct {
	mu    sync.Mutex
	saves []corev1.PodStatus
	save  func(n int, pod *corev1.Pod, to *corev1.PodStatus) (*corev1.Pod, error)
	asked int // decisions
}

func (s *stub) Observe(context.Context, *corev1.Pod) (plan.Seen, error) { return plan.Seen{}, nil }

func (s *stub) Do(ctx context.Context, _ work.Task) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *stub) SaveStatus(_ context.Context, pod *corev1.Pod, _, to *corev1.PodStatus) (*corev1.Pod, error) {
	s.mu.Lock()
	s.saves = append(s.saves, *to.DeepCopy())
	n := len(s.saves)
	s.mu.Unlock()
	time.Sleep(time.Second)
	return s.save(n, pod, to)
}

func (s *stub) Forget(context.Context, *corev1.Pod) error { return nil }

func (s *stub) Tell(*corev1.Pod, *corev1.PodStatus, *corev1.PodStatus) {}

func (s *stub) Announce(*corev1.Pod, string, plan.Event) {}

func (s *stub) Trace(*corev1.Pod, work.Event) {}

func (s *stub) Allocated(p *corev1.Pod) (*corev1.Pod, *plan.Resize) { return p, nil }

func (s *stub) Refuse(*corev1.Pod) *plan.Refusal { return nil }

func (s *stub) Facts() plan.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return plan.Node{Runtime: "stub"}
}

func gated(version int, conditions ...corev1.PodCondition) *corev1.Pod {
	p := admitted(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "img"}},
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/up"}}}})
	p.ResourceVersion = strconv.Itoa(version)
	p.Status.Conditions = append(p.Status.Conditions, conditions...)
	return p
}

func has(s *corev1.PodStatus, kind corev1.PodConditionType) bool {
	for _, c := range s.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// TestConditionsOfOthers: what others write into a pod's conditions is heard whenever it comes, also while a status of the
// worker's own is being stored, and is not put back when they take it away (PL-01).
func TestConditionsOfOthers(t *testing.T) {
	up := corev1.PodCondition{Type: "example.com/up", Status: corev1.ConditionTrue}
	stored := func(version int, to *corev1.PodStatus, more ...corev1.PodCondition) *corev1.Pod {
		p := gated(version)
		p.Status = *to.DeepCopy()
		p.Status.Conditions = append(p.Status.Conditions, more...)
		return p
	}
	for name, save := range map[string]func(n int, pod *corev1.Pod, to *corev1.PodStatus) (*corev1.Pod, error){
		"the store succeeds, on the older version": func(n int, _ *corev1.Pod, to *corev1.PodStatus) (*corev1.Pod, error) { return stored(10, to), nil },
		"the store succeeds, on the newer version": func(n int, _ *corev1.Pod, to *corev1.PodStatus) (*corev1.Pod, error) {
			if n == 1 {
				return stored(30, to, up), nil
			}
			return stored(30+n, to), nil
		},
		"the store fails": func(n int, _ *corev1.Pod, to *corev1.PodStatus) (*corev1.Pod, error) {
			if n == 1 {
				return nil, errors.New("timeout")
			}
			return stored(30+n, to), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				node := &stub{save: save}
				w := work.NewWorker(node, gated(1), slog.New(slog.DiscardHandler))
				go w.Run(ctx)
				time.Sleep(500 * time.Millisecond) // the first status is being stored
				w.Update(gated(20, up))
				time.Sleep(time.Minute)
				if s := w.View().Pod.Status; !has(&s, "example.com/up") {
					t.Errorf("the condition that came meanwhile is lost: %v", s.Conditions)
				}
				w.Update(gated(100))
				time.Sleep(time.Minute)
				if s := w.View().Pod.Status; has(&s, "example.com/up") {
					t.Errorf("the condition that was taken away is still there: %v", s.Conditions)
				}
				node.mu.Lock()
				if node.asked > 60 {
					t.Errorf("%d decisions about nothing", node.asked)
				}
				node.mu.Unlock()
				cancel()
				<-w.Ended()
			})
		})
	}
}

// TestEndOfOthers: a pod that somebody else has written off stays so, whatever its containers do, also when that is said while a
// status of the worker's own is being stored (PL-01).
func TestEndOfOthers(t *testing.T) {
	off := gated(20)
	off.Status.Phase, off.Status.Reason, off.Status.Message = corev1.PodFailed, "NodeLost", "gone"
	for name, when := range map[string]time.Duration{"while storing": 500 * time.Millisecond, "later": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				node := &stub{save: func(n int, _ *corev1.Pod, to *corev1.PodStatus) (*corev1.Pod, error) {
					p := gated(10 + 20*(n-1))
					p.Status = *to.DeepCopy()
					return p, nil
				}}
				w := work.NewWorker(node, gated(1), slog.New(slog.DiscardHandler))
				go w.Run(ctx)
				time.Sleep(when)
				if s := w.View().Pod.Status; s.Phase == corev1.PodFailed {
					t.Error("it has failed before anybody said so")
				}
				w.Update(off)
				time.Sleep(time.Minute)
				v := w.View()
				if s := v.Pod.Status; s.Phase != corev1.PodFailed || s.Reason != "NodeLost" || s.Message != "gone" {
					t.Errorf("it is %s, %s: %s", s.Phase, s.Reason, s.Message)
				}
				cancel()
				<-w.Ended()
			})
		})
	}
}

// TestSet: a pod has one worker, whoever is told of it first; one that came back while its worker was returning gets another.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		node := &stub{save: func(_ int, pod *corev1.Pod, to *corev1.PodStatus) (*corev1.Pod, error) { return nil, work.ErrGone }}
		set := work.NewSet(ctx, node, slog.New(slog.DiscardHandler))
		p := gated(1)
		set.Update(p)
		set.Update(p)
		set.Nudge("")
		set.Retry(p.UID)
		if _, ok := set.View(p.UID); !ok || len(set.Views()) != 1 || !set.Has(p.UID) {
			t.Errorf("views %v", set.Views())
		}
		time.Sleep(time.Minute) // the API server knows no such pod
		if set.Has(p.UID) {
			t.Error("the worker of a pod that is gone is still there")
		}
		set.Adopt(p)
		time.Sleep(time.Minute)
		if set.Has(p.UID) {
			t.Error("an orphan of which nothing is left is still there")
		}
		set.Update(p)
		cancel()
		set.Wait()
		set.Update(p)
		if set.Has(p.UID) {
			t.Error("a worker is made after the end")
		}
	})
}
