// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Set is the workers of a node, one per pod.
type Set struct {
	// Meter measures the workers; nil if nobody does. It is to be set before the first pod comes.
	Meter Meter

	node Node
	log  *slog.Logger

	mu      sync.Mutex
	ctx     context.Context
	workers map[types.UID]*Worker
	// forgotten are pods of which nothing is left, whose record was removed on this node's word, and whose removal is
	// still to be heard of. What comes of them until then (the removal shortens their grace first) is no news: a
	// deleted pod never comes back.
	forgotten map[types.UID]bool
	wg        sync.WaitGroup
}

// NewSet makes a set whose workers run until ctx ends; then Wait returns when the last of them has.
func NewSet(ctx context.Context, node Node, log *slog.Logger) *Set {
	return &Set{node: node, log: log, ctx: ctx, workers: map[types.UID]*Worker{}, forgotten: map[types.UID]bool{}}
}

// Update gives a pod to its worker, and makes one if it has none.
func (s *Set) Update(pod *corev1.Pod) {
	s.with(pod.UID, pod, func(w *Worker) { w.Update(pod) })
}

// Adopt makes a worker for a pod that only the node knows: its record is gone, so all it has left to do is to leave.
func (s *Set) Adopt(pod *corev1.Pod) {
	s.remember(pod.UID)
	s.with(pod.UID, pod, func(w *Worker) { w.Remove() })
}

// Remove tells a pod's worker that its record is gone.
func (s *Set) Remove(uid types.UID) {
	s.with(uid, nil, (*Worker).Remove)
	s.remember(uid)
}

func (s *Set) remember(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.forgotten, uid)
}

// Nudge makes a pod's worker look at the node; with an empty uid every worker does.
func (s *Set) Nudge(uid types.UID) {
	if uid != "" {
		s.with(uid, nil, (*Worker).Nudge)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		w.Nudge()
	}
}

// Reallocate tells a pod's worker that what the node sets aside for the pod may have changed.
func (s *Set) Reallocate(uid types.UID) { s.with(uid, nil, (*Worker).Reallocate) }

// Retry makes a pod's worker try again what failed.
func (s *Set) Retry(uid types.UID) { s.with(uid, nil, (*Worker).Retry) }

// Evict makes a pod's worker end it as evicted.
func (s *Set) Evict(uid types.UID, e plan.Eviction) {
	s.with(uid, nil, func(w *Worker) { w.Evict(e) })
}

// Has tells whether a pod has a worker.
func (s *Set) Has(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.workers[uid] != nil
}

// Views returns what all workers have of their pods.
func (s *Set) Views() []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]View, 0, len(s.workers))
	for _, w := range s.workers {
		out = append(out, w.View())
	}
	return out
}

// View returns what a pod's worker has of it.
func (s *Set) View(uid types.UID) (View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.workers[uid]
	if w == nil {
		return View{}, false
	}
	return w.View(), true
}

// Wait returns when all workers have.
func (s *Set) Wait() { s.wg.Wait() }

// with calls f on the pod's worker. If there is none, one is made for pod, unless that is nil.
func (s *Set) with(uid types.UID, pod *corev1.Pod, f func(*Worker)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.workers[uid]
	if w == nil {
		if pod == nil || s.ctx.Err() != nil || s.forgotten[uid] && pod.DeletionTimestamp != nil {
			return
		}
		w = NewWorker(s.node, pod, s.log)
		w.meter.to = s.Meter
		s.workers[uid] = w
		s.wg.Add(1)
		f(w)
		go s.run(uid, w)
		return
	}
	f(w)
}

func (s *Set) run(uid types.UID, w *Worker) {
	defer s.wg.Done()
	w.Run(s.ctx)
	s.mu.Lock()
	delete(s.workers, uid)
	left := w.box.take()
	// Of a static pod no removal is heard of: it is in no API server, and so without a version.
	if w.forgot && !left.removed && w.pod.ResourceVersion != "" {
		s.forgotten[uid] = true
	}
	s.mu.Unlock()
	// What came while the worker was returning goes to a new one, which most often finds nothing to do.
	if left.pod != nil && !left.removed && s.ctx.Err() == nil {
		s.Update(left.pod)
	}
}

func imageOf(pod *corev1.Pod, container string) string {
	if ref, ok := podspec.FindContainer(&pod.Spec, container); ok {
		return ref.Container.Image
	}
	return ""
}
