// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/wherryproject/wherry/internal/node/allot"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// relist is how often a worker looks at the node without being told to: the safety net under lost events.
const relist = 5 * time.Minute

// Worker keeps one pod going, from its arrival on the node until nothing is left of it.
type Worker struct {
	node Node
	log  *slog.Logger
	box  *mailbox

	// What follows belongs to the goroutine in Run.
	pod     *corev1.Pod
	has     *corev1.Pod // pod, with what the node has set aside for it
	resize  *plan.Resize
	version uint64 // resource version of pod, or of the last status stored, whichever is newer
	removed bool
	forgot  bool // the record was removed on this worker's word
	refused *plan.Refusal
	evicted *plan.Eviction   // the first one: a pod is evicted once
	status  corev1.PodStatus // as last decided
	saved   corev1.PodStatus // as the API server holds it
	seen    plan.Seen
	fresh   bool // seen is no older than the last news
	known   bool // seen was ever had
	heard   plan.Heard
	calls   map[plan.Key]*call
	returns chan returned
	save    saving
	looks   time.Time // when the safety net looks next
	ended   chan struct{}
	told    map[topic]bool // events of the last decision
	meter   meter

	// shown is what others may read, replaced whole.
	shown atomic.Pointer[View]
}

// View is a pod as its worker has it: the newest spec with the newest status, and what the node shows of it.
type View struct {
	Pod  *corev1.Pod
	Seen plan.Seen
}

// View returns the worker's newest picture. It is not to be changed.
func (w *Worker) View() View { return *w.shown.Load() }

func (w *Worker) show() {
	pod := *w.pod
	pod.Status = w.status
	w.shown.Store(&View{Pod: &pod, Seen: w.seen})
}

// NewWorker makes a worker for a pod as the API server has it.
func NewWorker(node Node, pod *corev1.Pod, log *slog.Logger) *Worker {
	w := &Worker{node: node, log: log.With("pod", pod.Namespace+"/"+pod.Name), box: newMailbox(),
		calls: map[plan.Key]*call{}, returns: make(chan returned), ended: make(chan struct{})}
	w.heard = plan.Heard{Pulled: map[string]plan.Pulled{}, Failed: map[plan.Key]plan.Failure{},
		Stopped: map[uint32]bool{}, Done: map[plan.Key]bool{}, Probes: map[plan.ProbeKey]plan.Probed{},
		Given: map[plan.Key]allot.Amounts{}}
	w.pod, w.version, w.refused = pod, version(pod), node.Refuse(pod)
	w.has, w.resize = node.Allocated(pod)
	w.status, w.saved = pod.Status, pod.Status
	w.show()
	return w
}

// Update hands the worker a newer version of its pod.
func (w *Worker) Update(pod *corev1.Pod) { w.box.post(func(n *news) { n.pod = pod }) }

// Remove tells the worker that the API server has no such pod any more.
func (w *Worker) Remove() { w.box.post(func(n *news) { n.removed = true }) }

// Nudge makes the worker look at the node again.
func (w *Worker) Nudge() { w.box.post(func(n *news) { n.nudge = true }) }

// Reallocate tells the worker that what the node sets aside for its pod may have changed.
func (w *Worker) Reallocate() { w.box.post(func(*news) {}) }

// Retry makes the worker try again at once what failed, because what the pod refers to has changed.
func (w *Worker) Retry() { w.box.post(func(n *news) { n.retry = true }) }

// Evict makes the worker end its pod as evicted. A pod that has ended or is being deleted stays as it is.
func (w *Worker) Evict(e plan.Eviction) {
	w.box.post(func(n *news) {
		if n.evict == nil {
			n.evict = &e
		}
	})
}

// Ended is closed when the worker has returned.
func (w *Worker) Ended() <-chan struct{} { return w.ended }

// Run works until nothing of the pod is left on the node and its record is removed, or until ctx ends; then calls that
// are out are cancelled and waited for, and what runs is left alone.
func (w *Worker) Run(ctx context.Context) {
	defer close(w.ended)
	defer w.drain()
	w.looks = time.Now().Add(relist)
	w.hear(w.box.take())
	for ctx.Err() == nil {
		w.meter.begin()
		w.allocate()
		wake := w.observe(ctx)
		if w.known {
			d := w.decide()
			w.show()
			w.announce(d.Why)
			w.apply(ctx, d)
			w.meter.end(w.removed || w.pod.DeletionTimestamp != nil)
			wake = earlier(wake, d.Wake)
			if d.Gone && w.forget(ctx) {
				w.node.Trace(w.pod, Event{At: time.Now(), Left: true})
				return
			}
		}
		w.wait(ctx, earlier(earlier(wake, w.save.next()), w.looks))
	}
}

// allocate takes in what the node sets aside for the pod. What failed for another allocation says nothing of this one.
func (w *Worker) allocate() {
	had := w.has
	w.has, w.resize = w.node.Allocated(w.pod)
	if had == w.has || podspec.ResourcesOf(had).Of(w.has) {
		return
	}
	for k := range w.heard.Failed {
		if k.Verb == plan.ResizePod || k.Verb == plan.ResizeContainer {
			delete(w.heard.Failed, k)
		}
	}
}

// observe brings seen up to date. When the node cannot be seen it says when to try again; nothing is decided on the
// old picture then.
func (w *Worker) observe(ctx context.Context) time.Time {
	if w.fresh {
		return time.Time{}
	}
	seen, err := w.node.Observe(ctx, w.has)
	if err != nil {
		w.known = false
		if ctx.Err() == nil {
			w.log.Warn("cannot observe pod", "err", err)
		}
		return time.Now().Add(time.Second)
	}
	w.seen, w.fresh, w.known = seen, true, true
	w.node.Trace(w.pod, Event{At: time.Now(), Seen: &seen})
	return time.Time{}
}

// decide asks the planner until its answer rests on facts that its answer does not change.
func (w *Worker) decide() plan.Decision {
	for {
		in := plan.Input{Removed: w.removed, Node: w.node.Facts(), Seen: w.seen, Heard: w.heard, Now: time.Now()}
		pod := *w.has
		pod.Status = w.status
		in.Pod, in.Resize = &pod, w.resize
		in.Refused, in.Evicted = w.refused, w.evicted
		in.Saved = w.isSaved()
		for _, c := range w.calls {
			in.Calls = append(in.Calls, plan.Call{Op: c.op, Cancelled: c.cancelled})
		}
		began := time.Now()
		d := plan.Next(in)
		w.meter.decided(began)
		if !equality.Semantic.DeepEqual(&w.status, &d.Status) {
			was := w.status
			w.status = d.Status
			w.show() // who is told looks at what there is
			w.node.Tell(w.pod, &was, &d.Status)
		}
		if in.Saved || !w.isSaved() {
			return d
		}
	}
}

func (w *Worker) isSaved() bool {
	return !w.save.out && equality.Semantic.DeepEqual(&w.status, &w.saved)
}

// apply starts what is missing, cancels what is not wanted, and has the status stored.
func (w *Worker) apply(ctx context.Context, d plan.Decision) {
	wanted := make(map[plan.Key]bool, len(d.Ops))
	for _, op := range d.Ops {
		wanted[op.Key()] = true
		if c, out := w.calls[op.Key()]; out {
			c.sooner(op.Until)
			continue
		}
		w.start(ctx, op)
	}
	for key, c := range w.calls {
		if !wanted[key] && !c.cancelled {
			w.log.Debug("operation cancelled", "op", key.Verb.String(), "container", key.Container, "attempt",
				key.Attempt)
			c.cancelled = true
			c.cancel()
		}
	}
	w.store(ctx)
}

// wait blocks until there are news and takes them in.
func (w *Worker) wait(ctx context.Context, until time.Time) {
	timer := time.NewTimer(max(0, time.Until(until)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
		if !time.Now().Before(w.looks) {
			w.looks, w.fresh = time.Now().Add(relist), false
		}
	case r := <-w.returns:
		w.returned(r)
	case r := <-w.save.done:
		w.stored(ctx, r)
	case <-w.box.signal:
		w.hear(w.box.take())
	}
}

// hear takes in news.
func (w *Worker) hear(n news) {
	if n.pod != nil {
		w.receive(n.pod)
	}
	if n.removed {
		w.removed = true
	}
	if (w.removed || w.pod.DeletionTimestamp != nil) && w.heard.LeftAt.IsZero() {
		w.heard.LeftAt = time.Now()
	}
	if n.nudge {
		w.fresh = false
	}
	if w.evicted == nil {
		w.evicted = n.evict
	}
	if n.retry {
		for k := range w.heard.Failed {
			if k.Verb == plan.PrepareVolumes || k.Verb == plan.StartContainer || k.Verb == plan.PullImage {
				delete(w.heard.Failed, k)
			}
		}
	}
}

// receive takes in a newer version of the pod.
func (w *Worker) receive(pod *corev1.Pod) {
	v := version(pod)
	if v < w.version {
		return // older than what was stored since
	}
	w.forgetImages(pod)
	w.pod, w.version, w.meter.changed = pod, v, true
	if w.save.out {
		w.save.came = pod // whether it is older or newer than what is being stored is known when that has ended
		return
	}
	w.heed(pod)
}

// heed takes in a status as the API server holds it. Only what others write is news in it: the rest is this worker's
// own.
func (w *Worker) heed(pod *corev1.Pod) {
	w.saved = pod.Status
	w.status = *w.status.DeepCopy()
	w.heedEnd(&pod.Status)
	w.status.NominatedNodeName = pod.Status.NominatedNodeName
	w.status.ResourceClaimStatuses = pod.Status.ResourceClaimStatuses
	w.status.Conditions = slices.DeleteFunc(w.status.Conditions, func(c corev1.PodCondition) bool {
		return !ours(c.Type) && !slices.ContainsFunc(pod.Status.Conditions,
			func(o corev1.PodCondition) bool { return o.Type == c.Type })
	})
	for _, c := range pod.Status.Conditions {
		if !ours(c.Type) {
			setCondition(&w.status, c)
		}
	}
}

// heedEnd takes in that somebody else has written the pod off: a pod that has ended does not come back (PL-01), so what
// runs of it stops, within its grace from now on.
func (w *Worker) heedEnd(stored *corev1.PodStatus) {
	if !over(stored) || over(&w.status) {
		return
	}
	w.status.Phase, w.status.Reason, w.status.Message = stored.Phase, stored.Reason, stored.Message
	if w.heard.LeftAt.IsZero() {
		w.heard.LeftAt = time.Now()
	}
}

func over(s *corev1.PodStatus) bool {
	return s.Phase == corev1.PodFailed || s.Phase == corev1.PodSucceeded
}

// ours tells whether the planner derives this condition.
func ours(t corev1.PodConditionType) bool {
	switch t {
	case corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
		corev1.PodResizePending, corev1.PodResizeInProgress:
		return true
	}
	return false
}

func setCondition(s *corev1.PodStatus, c corev1.PodCondition) {
	for i := range s.Conditions {
		if s.Conditions[i].Type == c.Type {
			s.Conditions[i] = c
			return
		}
	}
	s.Conditions = append(s.Conditions, c)
}

// version reads a resource version, which within one API server's objects is a number that grows (KEP-5504). One that
// is not counts as newest.
func version(pod *corev1.Pod) uint64 {
	v, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if err != nil {
		return ^uint64(0)
	}
	return v
}

// earlier returns the earlier of two times, where zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
