// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/cli/progress"
	"github.com/wherryproject/wherry/internal/podspec"
)

// drainTime is how long logs may trail behind a pod's end.
const drainTime = 5 * time.Second

// lastWords is how long the news of a container's end waits for what it printed: its own output explains it.
const lastWords = time.Second

// follower reports one pod's life.
type follower struct {
	owner    *Runner
	self     *corev1.Pod // as created: who it is; never changes, so all goroutines may read it
	pod      *corev1.Pod // as last seen
	shown    *corev1.Pod // as last shown; nil at first
	gone     bool
	wayShown bool // where the time until readiness went
	ofCrew   bool // a workload made it, and may end it at any time

	causes map[progress.Line]bool // causes of a wait that were shown
	placed chan struct{}          // closed when the pod has a node

	logs   sync.WaitGroup
	copied map[string]chan struct{} // by container: closed when what its newest attempt printed is copied
	cut    map[string]bool          // containers whose log was reported to be cut off, with cutMu
	cutMu  sync.Mutex
	opened map[string]int32 // attempts whose logs are being followed: container -> highest
}

func newFollower(r *Runner, pod *corev1.Pod) *follower {
	return &follower{owner: r, self: pod, pod: pod, causes: map[progress.Line]bool{}, placed: make(chan struct{}),
		copied: map[string]chan struct{}{}, opened: map[string]int32{}, cut: map[string]bool{}}
}

// run follows the pod until it has ended, is ready (detached), is gone, is hopeless, or ctx ends.
func (f *follower) run(ctx context.Context) (last *corev1.Pod, code int, err error) {
	logCtx, stopLogs := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLogs()
	eventCtx, stopEvents := context.WithCancel(ctx)
	defer stopEvents()
	if !f.owner.Options.Quiet {
		f.logs.Go(func() { f.showPullEvents(eventCtx) })
	}
	err = f.watch(ctx, func(now *corev1.Pod) (bool, error) { return f.see(logCtx, now) })
	stopEvents()
	f.drain(stopLogs, err)
	f.draw(ctx)
	if stuck, ok := errors.AsType[*stuckError](err); ok {
		return f.pod, stuck.trouble.ExitCode, err
	}
	if err != nil {
		return f.pod, 0, err
	}
	return f.end()
}

// watch has see called with what becomes of the pod. One that a workload made has a life already when it is heard of.
func (f *follower) watch(ctx context.Context, see func(*corev1.Pod) (bool, error)) error {
	if f.ofCrew {
		if done, err := see(f.self); done || err != nil {
			return err
		}
	}
	return watchPod(ctx, f.owner.Client, f.self, f.self.ResourceVersion, see)
}

// stuckError is why a pod is not waited for any longer.
type stuckError struct{ trouble progress.Trouble }

func (e *stuckError) Error() string { return e.trouble.String() }

// see looks at the pod's newest version, nil when it is gone. It returns true when there is nothing more to wait for.
func (f *follower) see(ctx context.Context, now *corev1.Pod) (bool, error) {
	if now == nil {
		f.gone = true
		return true, nil
	}
	if !f.owner.Options.Detach {
		f.openLogs(ctx, now, false)
		f.awaitLastWords(ctx, now)
	}
	for _, l := range progress.Diff(f.shown, now) {
		if f.causes[l] {
			continue
		}
		if l.Cause {
			f.causes[l] = true
		}
		f.owner.Screen.Show(now.Name, l)
	}
	if now.Spec.NodeName != "" && (f.shown == nil || f.shown.Spec.NodeName == "") {
		close(f.placed)
	}
	f.pod, f.shown = now, now
	if progress.Ready(now) && !f.wayShown {
		f.wayShown = true
		if f.owner.Options.Detach { // nothing else is waited for
			f.showWay(ctx, now)
		} else {
			f.logs.Go(func() { f.showWay(ctx, now) })
		}
	}
	if !f.owner.Options.Detach {
		f.openLogs(ctx, now, true)
	}
	if _, _, ended := progress.Outcome(now); ended {
		return true, nil
	}
	if t, stuck := progress.Stuck(now); stuck && (t.Hopeless || f.owner.Options.FailFast) {
		return false, &stuckError{t}
	}
	// Of a workload's pods the end counts: how one that is ready ends may be what its Job comes to.
	return f.owner.Options.Detach && !f.ofCrew && progress.Ready(now), nil
}

func (f *follower) end() (*corev1.Pod, int, error) {
	code, _, ended := progress.Outcome(f.pod) // the reason was shown as it happened
	switch {
	case ended || !f.gone:
		return f.pod, code, nil
	case f.ofCrew:
		code, _ = progress.LastFailure(f.pod)
		return f.pod, code, nil
	}
	return f.pod, 1, &goneError{"pod " + f.pod.Namespace + "/" + f.pod.Name, f.pod.UID}
}

// goneError is that somebody else deleted what a run attends to.
type goneError struct {
	what string
	uid  types.UID
}

func (e *goneError) Error() string { return e.what + " was deleted by someone else before it ended" }

// drain lets the logs of an ended pod come in whole. They end by themselves with their containers.
func (f *follower) drain(stop context.CancelFunc, err error) {
	done := make(chan struct{})
	go func() { f.logs.Wait(); close(done) }()
	if err == nil && !f.owner.Options.Detach {
		timer := time.NewTimer(drainTime)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		}
	}
	stop()
	<-done
}

// openLogs starts to follow every container attempt that has output and is not followed yet: of containers that run, or
// of those that have ended.
func (f *follower) openLogs(ctx context.Context, pod *corev1.Pod, running bool) {
	for _, s := range podspec.OwnStatuses(&pod.Status) {
		if running && s.State.Running == nil || !running && s.State.Terminated == nil {
			continue
		}
		if n, ok := f.opened[s.Name]; ok && n >= s.RestartCount {
			continue
		}
		f.opened[s.Name] = s.RestartCount
		name, done, by := s.Name, make(chan struct{}), f.copyLogs
		if f.owner.Attach != nil && running {
			by = func(ctx context.Context, container string) { f.attach(ctx, pod, container) }
		}
		f.copied[name] = done
		f.logs.Go(func() {
			defer close(done)
			by(ctx, name)
		})
	}
}

// awaitLastWords waits for the output of containers that have newly ended, for a while.
func (f *follower) awaitLastWords(ctx context.Context, now *corev1.Pod) {
	ended := map[string]bool{}
	if f.shown != nil {
		for _, s := range podspec.OwnStatuses(&f.shown.Status) {
			ended[s.Name] = s.State.Terminated != nil
		}
	}
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	for _, s := range podspec.OwnStatuses(&now.Status) {
		done := f.copied[s.Name]
		if s.State.Terminated == nil || ended[s.Name] || done == nil {
			continue
		}
		select {
		case <-done:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// attach carries a container's streams. One that has ended meanwhile is shown by its log.
func (f *follower) attach(ctx context.Context, pod *corev1.Pod, container string) {
	r := f.owner
	tty := f.tty(container)
	out, errs := r.Screen.Log(pod.Name, container, false), r.Screen.Log(pod.Name, container, true)
	r.Screen.lend(tty)
	err := r.Attach(ctx, pod, container, out, errs)
	r.Screen.lend(false)
	out.Close()
	errs.Close()
	switch _, refused := errors.AsType[*apierrors.StatusError](err); {
	case err == nil || ctx.Err() != nil:
	case refused:
		f.copyLogs(ctx, container)
	default:
		r.Screen.Show(pod.Name, progress.Line{Container: container, Text: "the session was interrupted: " + err.Error(),
			Trouble: true})
	}
}

func (f *follower) tty(container string) bool {
	for _, c := range f.self.Spec.Containers {
		if c.Name == container {
			return c.TTY
		}
	}
	return false
}
