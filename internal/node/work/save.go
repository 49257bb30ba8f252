// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// saving is the storing of a status: one at a time, the newest next.
type saving struct {
	out    bool
	what   corev1.PodStatus
	done   chan savedStatus
	cancel context.CancelFunc
	fails  int
	due    time.Time   // not before, after a failure
	came   *corev1.Pod // newest version of the pod that came meanwhile, or nil
}

// next returns when to try again; zero when there is no telling, or it is time already.
func (s *saving) next() time.Time {
	if time.Now().Before(s.due) {
		return s.due
	}
	return time.Time{}
}

// savedStatus is how the storing of a status ended.
type savedStatus struct {
	pod *corev1.Pod // as the API server holds it now
	err error
}

const (
	saveRetry    = 100 * time.Millisecond
	saveRetryMax = 5 * time.Second
)

// store has the status stored if the API server holds another one.
func (w *Worker) store(ctx context.Context) {
	if w.removed || w.save.out || time.Now().Before(w.save.due) || equality.Semantic.DeepEqual(&w.status, &w.saved) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	from, to := w.saved, *w.status.DeepCopy()
	w.save = saving{out: true, what: to, done: make(chan savedStatus, 1), cancel: cancel, fails: w.save.fails}
	done, pod := w.save.done, w.pod
	go func() {
		defer cancel()
		now, err := w.node.SaveStatus(ctx, pod, &from, &to)
		done <- savedStatus{now, err}
	}()
}

// stored takes in how the storing of a status ended.
func (w *Worker) stored(ctx context.Context, r savedStatus) {
	err, came := r.err, w.save.came
	w.save.out, w.save.done, w.save.came = false, nil, nil
	w.save.due = time.Time{}
	if came != nil && (err != nil || r.pod == nil || version(came) > version(r.pod)) {
		w.heed(came)
	}
	switch {
	case err == nil:
		w.save.fails = 0
		if r.pod == nil || came == nil || version(came) <= version(r.pod) {
			if r.pod != nil && version(r.pod) >= w.version {
				w.heed(r.pod)
				w.version = version(r.pod)
			}
			w.saved = w.save.what // though the API server may word it otherwise: it would not get closer
		}
	case errors.Is(err, ErrGone):
		w.hear(news{removed: true})
	default:
		w.save.fails++
		w.save.due = time.Now().Add(min(saveRetry<<min(w.save.fails-1, 10), saveRetryMax))
		level := slog.LevelWarn
		if w.save.fails == 1 && apierrors.IsForbidden(err) {
			// A node has no rights to a pod that is gone: most often that is heard in a moment.
			level = slog.LevelDebug
		}
		w.log.Log(ctx, level, "cannot store status", "err", err, "times", w.save.fails)
	}
}

// forget removes the pod's record when nothing of it is left on the node, and tells whether that is done.
func (w *Worker) forget(ctx context.Context) bool {
	if w.removed {
		return true
	}
	if time.Now().Before(w.save.due) {
		return false
	}
	if err := w.node.Forget(ctx, w.pod); err != nil {
		w.save.fails++
		w.save.due = time.Now().Add(min(saveRetry<<min(w.save.fails-1, 10), saveRetryMax))
		if ctx.Err() == nil {
			w.log.Warn("cannot remove the pod's record", "err", err)
		}
		return false
	}
	w.forgot = true
	return true
}
