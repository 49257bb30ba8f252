// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/node/evict"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/pressure"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Eviction is what an agent does when a resource runs out; the zero value holds pods to their own limits and does
// nothing else.
type Eviction struct {
	Thresholds  []evict.Threshold
	Transition  time.Duration // how long a condition outlives its cause
	MaxPodGrace time.Duration // of a pod that goes for a soft threshold; below 0: its own
	Images      evict.ImagePolicy
	StallFile   string // where the kernel reports memory pressure (PSI); "": /proc/pressure/memory
}

const (
	// measureEvery is the kubelet's period too. The kernel reports stalls on memory (PSI), see [pressure.Stalls];
	// nothing reports a disk or a process table that fills up, or memory that is used while some is still free.
	measureEvery = 10 * time.Second
	// measureNear is the period while a disk is nearly full: a program fills what is left in a second.
	measureNear = time.Second
	// evictPatience is how long one pod may take to go before another one has to.
	evictPatience = 30 * time.Second
	// atOnce is the grace of those that go for a hard threshold or a limit of their own.
	atOnce = time.Second
)

// evictor measures, and ends pods when package evict says so (PL-13, EC-18).
type evictor struct {
	a      *Agent
	cfg    Eviction
	log    *slog.Logger
	meter  pressure.Meter
	images imageKeeper

	mu    sync.Mutex // taken while workers are made: no worker is asked for while it is held
	state evict.State
	full  bool                    // the disk is: what ended pods left is to be removed
	going map[types.UID]time.Time // pods that are being evicted, and how long they are waited for

	gone chan struct{} // holds one token when a pod that is being evicted has gone

	// What follows belongs to the goroutine in run.
	cleared bool      // disk was reclaimed since the pressure began
	idle    bool      // it was logged that no pod can be evicted
	checked time.Time // when pods were held to their own limits, which reads their folders: not with every stall
}

func newEvictor(a *Agent) *evictor {
	e := &evictor{a: a, cfg: a.cfg.Eviction, log: a.log, going: map[types.UID]time.Time{}, gone: make(chan struct{}, 1)}
	e.images = imageKeeper{images: a.cfg.CRI.Images, runtime: a.cfg.CRI.Runtime, log: a.log, pulls: a.pulls,
		seen: map[string]evict.Image{}, drop: a.cfg.DropPulls}
	e.meter = pressure.Meter{Proc: "/proc", NodeFs: a.cfg.DataDir}
	if d := a.cfg.Cgroups; d != nil && !d.Host().V2 {
		e.meter.MemoryGroup = d.Host().Mounts["memory"]
	}
	return e
}

// begin takes the first measurement, before the node says anything of itself and before a pod comes.
func (e *evictor) begin(ctx context.Context) {
	if info, err := e.a.cfg.CRI.Images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{}); err == nil {
		for _, fs := range info.GetImageFilesystems() {
			e.meter.ImageFs = fs.GetFsId().GetMountpoint()
		}
	}
	e.measure()
}

// run goes on until ctx ends.
func (e *evictor) run(ctx context.Context) {
	stalls, err := pressure.Stalls(ctx, cmp.Or(e.cfg.StallFile, "/proc/pressure/memory"))
	if err != nil {
		e.log.Debug("memory is checked only periodically", "every", measureEvery, "err", err)
	}
	timer := time.NewTimer(measureEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if stalls != nil {
				for range stalls { // until the watch has ended
				}
			}
			return
		case _, more := <-stalls:
			if !more {
				stalls = nil
			}
		case <-e.gone: // it may be enough, or not
		case <-timer.C:
		}
		timer.Reset(e.round(ctx))
	}
}

// round measures once, does what is to be done, and says when to measure again.
func (e *evictor) round(ctx context.Context) time.Duration {
	readings, due := e.measure()
	if !e.limits(ctx) && len(due) > 0 {
		e.relieve(ctx, readings, due)
	}
	e.images.collect(ctx, e.cfg.Images, readings[evict.ImageFsAvailable], false, e.named())
	e.mu.Lock()
	defer e.mu.Unlock()
	every := measureEvery
	if evict.NearlyFull(e.cfg.Thresholds, readings) && !e.idle {
		every = measureNear
	}
	if wait, ok := evict.Wake(e.cfg.Thresholds, e.state, time.Now()); ok {
		return min(wait, every)
	}
	return every
}

// measure brings the state up to date, and has it published when a condition has changed.
func (e *evictor) measure() (evict.Readings, []evict.Threshold) {
	readings, err := e.meter.Read()
	if err != nil {
		e.log.Warn("cannot measure all of the node's resources", "err", err)
	}
	if disk, ok := readings[evict.NodeFsAvailable]; ok && e.a.cfg.DiskMeasured != nil {
		e.a.cfg.DiskMeasured(disk.Available)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.state
	var due []evict.Threshold
	e.state, due = evict.Judge(e.cfg.Thresholds, readings, was, e.cfg.Transition, time.Now())
	if !maps.EqualFunc(was.Pressed, e.state.Pressed, func(time.Time, time.Time) bool { return true }) {
		e.log.Info("node pressure has changed", "conditions", conditionNames(e.state))
		e.a.conditionsChanged()
	}
	if !e.state.Under(corev1.NodeDiskPressure) {
		e.full, e.cleared, e.idle = false, false, false
	}
	return readings, due
}

func conditionNames(s evict.State) (out []corev1.NodeConditionType) {
	for _, t := range pressures() {
		if s.Under(t.kind) {
			out = append(out, t.kind)
		}
	}
	return out
}

// relieve makes room for the most urgent threshold: on a disk by what nobody needs, and then, or else, by ending one
// pod.
func (e *evictor) relieve(ctx context.Context, readings evict.Readings, due []evict.Threshold) {
	first := due[0]
	if first.Signal.Disk() {
		e.clear(ctx, readings)
		if !e.cleared { // what that has freed is known in the next round
			e.cleared = true
			return
		}
	}
	if e.waits() {
		return
	}
	pods, err := e.a.use(ctx, e.running(), first.Signal.Disk())
	if err != nil {
		e.log.Warn("cannot measure pods, so none is evicted", "threshold", first.String(), "err", err)
		return
	}
	victim := evict.Choose(first, readings[first.Signal], pods)
	if victim == nil {
		if !e.idle {
			e.log.Warn("no pod to evict", "threshold", first.String())
		}
		e.idle = true
		return
	}
	e.idle = false
	grace := atOnce
	if first.Soft {
		grace = e.cfg.MaxPodGrace
	}
	e.evict(victim.Pod, victim.Message, string(first.Signal), grace)
}

// clear removes unused images, and what ended pods have left in the runtime.
func (e *evictor) clear(ctx context.Context, readings evict.Readings) {
	e.images.collect(ctx, e.cfg.Images, readings[evict.ImageFsAvailable], true, e.named())
	e.mu.Lock()
	e.full = true
	e.mu.Unlock()
	e.a.workers.Nudge("")
}

// limits ends pods that have more on disk than they may, and reports whether there were any.
func (e *evictor) limits(ctx context.Context) bool {
	var bound []*corev1.Pod
	for _, p := range e.running() {
		if evict.Limited(p) && !evict.Critical(p) {
			bound = append(bound, p)
		}
	}
	if len(bound) == 0 || time.Since(e.checked) < measureEvery/2 {
		return false
	}
	e.checked = time.Now()
	pods, err := e.a.use(ctx, bound, true)
	if err != nil {
		e.log.Warn("cannot enforce the disk limits of pods", "err", err)
		return false
	}
	found := false
	for _, c := range pods {
		if why := evict.OverLimit(c); why != "" {
			e.evict(c.Pod, why, "ephemeral-storage.limit", atOnce)
			found = true
		}
	}
	return found
}

func (e *evictor) evict(pod *corev1.Pod, message, signal string, grace time.Duration) {
	now := time.Now()
	if grace < 0 {
		grace = ownGrace(pod)
	}
	e.log.Warn("evicting pod", "pod", pod.Namespace+"/"+pod.Name, "signal", signal, "why", message)
	e.mu.Lock()
	e.going[pod.UID] = now.Add(grace + evictPatience)
	e.mu.Unlock()
	e.a.metrics.Evicted(signal)
	e.a.workers.Evict(pod.UID, plan.Eviction{Message: message, At: now, Grace: max(grace, atOnce)})
}

// ownGrace is how long a pod itself wants its containers to take.
func ownGrace(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return podspec.Seconds(*s)
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// waits reports whether a pod that is being evicted still holds its resources, and has not taken too long.
func (e *evictor) waits() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.going, func(_ types.UID, until time.Time) bool { return time.Now().After(until) })
	return len(e.going) > 0
}

// observed is called with what the node shows of a pod. One that is being evicted has gone when nothing of it runs and
// its volumes are released.
func (e *evictor) observed(uid types.UID, seen *plan.Seen) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, going := e.going[uid]; !going || holds(seen) {
		return
	}
	delete(e.going, uid)
	select {
	case e.gone <- struct{}{}:
	default: // already notified
	}
}

// holds reports whether a pod still has something that others could use.
func holds(seen *plan.Seen) bool {
	live := seen.Volumes
	for i := range seen.Containers {
		live = live || seen.Containers[i].Live()
	}
	return live
}

// running lists the pods that could go.
func (e *evictor) running() (out []*corev1.Pod) {
	views := (host{e.a}).views()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range views {
		p := v.Pod
		_, going := e.going[p.UID]
		if !going && !plan.IsEviction(p.Status.Reason) && p.DeletionTimestamp == nil &&
			p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded && p.Spec.NodeName != "" {
			out = append(out, p)
		}
	}
	return out
}

// named lists the images that the node's pods name: one that is pulled for a container which is not there yet is in use
// too.
func (e *evictor) named() []string {
	var out []string
	for _, p := range e.running() {
		out = append(out, imagesOf(p)...)
	}
	return out
}

// refuse says why a pod cannot begin now, or "".
func (e *evictor) refuse(pod *corev1.Pod) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return evict.Admit(pod, e.state)
}

// pressed is what the node's conditions and the planner get.
func (e *evictor) pressed() (state evict.State, full bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state, e.full
}
