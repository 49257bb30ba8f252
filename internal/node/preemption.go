// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/controllers/scheduler/fit"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// messagePreempted is the kubelet's sentence, in the status of a pod that goes for a critical one.
const messagePreempted = "Preempted in order to admit critical pod"

// preemption is the room that is being made for critical pods (PL-20): who goes, and who waits for that. It belongs to
// the admission, whose lock guards it. Who goes is not counted any more from the moment it was decided; a critical pod
// begins when all of them have gone.
//
// An agent that is restarted finds who goes by the reason in the status, which is published with the first stop; what
// was not published yet is decided again.
type preemption struct {
	going   map[types.UID]*going
	waiting map[types.UID]*corev1.Pod
}

// going is a pod that makes room.
type going struct {
	eviction *plan.Eviction // nil: an earlier agent has begun it
	resource string         // that was missing first
	begun    bool
	gone     bool // it holds nothing any more, or has taken too long
}

func newPreemption() preemption {
	return preemption{going: map[types.UID]*going{}, waiting: map[types.UID]*corev1.Pod{}}
}

// leaves reports whether a pod makes room.
func (r *preemption) leaves(uid types.UID) bool { return r.going[uid] != nil }

// forget drops a pod that is no more.
func (r *preemption) forget(uid types.UID) {
	delete(r.going, uid)
	delete(r.waiting, uid)
}

// open reports whether nobody has to be waited for.
func (r *preemption) open() bool {
	for _, g := range r.going {
		if !g.gone {
			return false
		}
	}
	return true
}

// preempt makes room for a critical pod, if that is what it lacks and others can give it.
func (a *admission) preempt(pod *corev1.Pod, why *fit.Misfit) bool {
	if why.Resource == "" { // nobody's going would help
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	victims, ok := fit.MakeRoom(pod, a.node)
	for _, v := range victims {
		a.node.Remove(v.UID)
		e := &plan.Eviction{Reason: plan.ReasonPreempting, Message: messagePreempted, At: time.Now(),
			Grace: ownGrace(v)}
		a.room.going[v.UID] = &going{eviction: e, resource: why.Resource}
	}
	return ok
}

// resume takes up what an earlier agent has decided about a pod.
func (a *admission) resume(pod *corev1.Pod) {
	if pod.Status.Reason != plan.ReasonPreempting {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.room.going[pod.UID] = &going{begun: true}
}

// await keeps a critical pod back for as long as room is being made.
func (a *admission) await(pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if podspec.Critical(pod) && !a.room.open() {
		a.room.waiting[pod.UID] = pod
	}
}

// waits reports whether a pod is kept back. One that is to be deleted is not.
func (a *admission) waits(pod *corev1.Pod) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.room.waiting[pod.UID] == nil {
		return false
	}
	if pod.DeletionTimestamp != nil || a.room.open() {
		delete(a.room.waiting, pod.UID)
		return false
	}
	a.room.waiting[pod.UID] = pod
	return true
}

// victims are those whose eviction is to begin: all that it has not begun for, and uid in any case, whose worker may be
// new.
func (a *admission) victims(uid types.UID) map[types.UID]going {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[types.UID]going{}
	for id, g := range a.room.going {
		if g.eviction != nil && (!g.begun || id == uid) {
			out[id] = *g
			g.begun = true
		}
	}
	return out
}

// gone is called when a pod holds nothing any more, or has taken too long, and returns who need not wait any longer.
func (a *admission) gone(uid types.UID) (ready []*corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.room.going[uid]
	if g == nil || g.gone {
		return nil
	}
	g.gone = true
	return a.room.ready()
}

// ready takes those that waited out of the waiting list, if there is nobody to wait for.
func (r *preemption) ready() (pods []*corev1.Pod) {
	if !r.open() {
		return nil
	}
	for uid, p := range r.waiting {
		pods = append(pods, p)
		delete(r.waiting, uid)
	}
	return pods
}

// hand gives a pod to its worker, unless it has to wait until others have made room for it. Those are evicted.
func (a *Agent) hand(ctx context.Context, pod *corev1.Pod) {
	if !a.admission.waits(pod) {
		a.workers.Update(pod)
	}
	for uid, g := range a.admission.victims(pod.UID) {
		a.workers.Evict(uid, *g.eviction)
		if g.begun {
			continue
		}
		a.log.Warn("preempting a pod to make room for a critical one", "pod", uid, "resource", g.resource)
		a.metrics.Preempted(g.resource)
		time.AfterFunc(g.eviction.Grace+evictPatience, func() {
			if ctx.Err() == nil {
				a.left(uid)
			}
		})
	}
}

// left lets those begin that have waited for a pod to go.
func (a *Agent) left(uid types.UID) {
	for _, p := range a.admission.gone(uid) {
		a.workers.Update(p)
	}
}
