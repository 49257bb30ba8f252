// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/volume"
)

// refresher writes the files of volumes anew when what they come from has changed (PL-05). One pod at a time; a pod
// that changes again while it is written is written once more.
type refresher struct {
	a  *Agent
	mu sync.Mutex
	q  map[types.UID]bool
	// signal holds one token while q is not empty.
	signal chan struct{}
}

func newRefresher(a *Agent) *refresher {
	return &refresher{a: a, q: map[types.UID]bool{}, signal: make(chan struct{}, 1)}
}

func (r *refresher) due(uid types.UID) {
	r.mu.Lock()
	r.q[uid] = true
	r.mu.Unlock()
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

// podChanged is called with a pod's new version: downward files show its labels and annotations.
func (r *refresher) podChanged(was, now *corev1.Pod) {
	if !maps.Equal(was.Labels, now.Labels) || !maps.Equal(was.Annotations, now.Annotations) {
		r.due(now.UID)
	}
}

func (r *refresher) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.signal:
		}
		r.mu.Lock()
		batch := r.q
		r.q = map[types.UID]bool{}
		r.mu.Unlock()
		for uid := range batch {
			r.refresh(ctx, uid)
		}
	}
}

func (r *refresher) refresh(ctx context.Context, uid types.UID) {
	v, ok := r.a.workers.View(uid)
	if !ok || !v.Seen.Volumes || v.Pod.DeletionTimestamp != nil {
		return // there is nothing to write, or nobody to read it
	}
	pod, _ := r.a.Allocated(r.newest(v.Pod))
	_, err := r.a.volumes.Refresh(ctx, pod)
	if err == nil || ctx.Err() != nil {
		return
	}
	r.a.log.Warn("cannot refresh the volumes of a pod", "pod", v.Pod.Namespace+"/"+v.Pod.Name, "err", err)
	for _, f := range volume.Failures(err) {
		r.a.events.Event(v.Pod, "", corev1.EventTypeWarning, f.Reason(), f.Error())
	}
}

// newest is the pod as the API server has it. Its worker may not have taken in yet the very change that the files are
// to show.
func (r *refresher) newest(pod *corev1.Pod) *corev1.Pod {
	if r.a.standalone() {
		return pod
	}
	o, ok, err := r.a.pods.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
	if now, isPod := o.(*corev1.Pod); err == nil && ok && isPod && now.UID == pod.UID {
		return now
	}
	return pod
}
