// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
)

// call is an operation that is out.
type call struct {
	op        plan.Op
	cancel    context.CancelFunc
	cancelled bool
	began     time.Time
	until     chan time.Time // earlier deadlines, the newest only
	image     string         // the spec's image at the start, if it is on a container
}

// returned is how a call ended.
type returned struct {
	key plan.Key
	err error
}

// start runs an operation in a goroutine of its own.
func (w *Worker) start(ctx context.Context, op plan.Op) {
	ctx, cancel := context.WithCancel(ctx)
	c := &call{op: op, cancel: cancel, began: time.Now(), until: make(chan time.Time, 1)}
	c.image = imageOf(w.pod, op.Container)
	w.calls[op.Key()] = c
	w.log.Debug("operation starts", "op", op.Verb.String(), "container", op.Container, "attempt", op.Attempt)
	w.node.Trace(w.pod, Event{At: c.began, Op: op})
	task := Task{Pod: w.has, Op: op, Seen: w.seen, Sooner: c.until}
	go func() {
		defer cancel()
		err := w.node.Do(ctx, task)
		w.returns <- returned{op.Key(), err}
	}()
}

// sooner brings the deadline of a stop forward. A later one is no news.
func (c *call) sooner(until time.Time) {
	if until.IsZero() || !until.Before(c.op.Until) {
		return
	}
	c.op.Until = until
	select {
	case <-c.until: // nobody has read the one before: this one replaces it
	default:
	}
	c.until <- until
}

// returned takes in how a call ended. What it changed on the node is seen by the next observation.
func (w *Worker) returned(r returned) {
	c := w.calls[r.key]
	delete(w.calls, r.key)
	w.node.Trace(w.pod, Event{At: time.Now(), Op: c.op, Returned: true, Cancelled: c.cancelled, Err: r.err})
	if r.key.Verb == plan.Probe { // it changes nothing on the node
		w.tried(c, r)
		return
	}
	if r.key.Verb != plan.PullImage { // which changes nothing of the pod's
		w.fresh = false
	}
	if r.err != nil {
		w.failed(c, r)
		return
	}
	w.log.Debug("operation done", "op", r.key.Verb.String(), "container", r.key.Container, "attempt", r.key.Attempt)
	delete(w.heard.Failed, r.key)
	switch r.key.Verb {
	case plan.PrepareVolumes:
		w.heard.Prepared = true
	case plan.PullImage:
		w.heard.Pulled[r.key.Container] = plan.Pulled{Attempt: r.key.Attempt, Image: c.image}
	case plan.StopSandbox:
		w.heard.Stopped[r.key.Attempt] = true
	case plan.ReleaseVolumes:
		w.heard.Prepared = false
	case plan.RemoveContainer: // its number may be given again
		delete(w.heard.Failed, plan.Key{Verb: plan.StartContainer, Container: r.key.Container, Attempt: r.key.Attempt})
	case plan.PostStart, plan.PreStop:
		w.heard.Done[r.key] = true
	case plan.ResizePod, plan.ResizeContainer:
		w.heard.Given[r.key] = c.op.Give
	case plan.StartContainer:
		w.forgetOlder(r.key)
		w.forgetProbes(r.key)
	}
}

func (w *Worker) failed(c *call, r returned) {
	if c.cancelled || r.key.Container != "" && c.image != imageOf(w.pod, r.key.Container) {
		return // nobody wants it any more
	}
	if errors.Is(r.err, ErrImageGone) {
		delete(w.heard.Pulled, r.key.Container)
	}
	f := w.heard.Failed[r.key]
	f.Times++
	f.At = time.Now()
	f.Reason, f.Message, f.Image = reasonOf(r.err, defaultReason[r.key.Verb]), r.err.Error(), failedImage(r.err)
	w.heard.Failed[r.key] = f
	log := w.log
	if r.key.Verb == plan.PullImage {
		log = log.With("image", c.image)
	}
	log.Warn("operation failed", "op", r.key.Verb.String(), "container", r.key.Container, "attempt", r.key.Attempt,
		"times", f.Times, "err", r.err)
}

// forgetImages drops failures of containers whose image is another one in pod: what failed for the old one says nothing
// of the new one, least of all how long to wait.
func (w *Worker) forgetImages(pod *corev1.Pod) {
	for k := range w.heard.Failed {
		if (k.Verb == plan.PullImage || k.Verb == plan.StartContainer) &&
			imageOf(w.pod, k.Container) != imageOf(pod, k.Container) {
			delete(w.heard.Failed, k)
		}
	}
}

// forgetOlder drops failures of attempts before the one that has started.
func (w *Worker) forgetOlder(started plan.Key) {
	for k := range w.heard.Failed {
		if k.Container == started.Container && k.Attempt < started.Attempt {
			delete(w.heard.Failed, k)
		}
	}
}

// defaultReason is what a status shows for an operation that failed without a reason of its own.
var defaultReason = map[plan.Verb]string{
	plan.PullImage:      "ErrImagePull",
	plan.StartContainer: "CreateContainerError",
	plan.RunSandbox:     "FailedCreatePodSandBox",
	plan.PrepareVolumes: "FailedMount",
}

// drain cancels what is out and waits for it, so that no goroutine outlives the worker.
func (w *Worker) drain() {
	for _, c := range w.calls {
		c.cancel()
	}
	for len(w.calls) > 0 {
		r := <-w.returns
		delete(w.calls, r.key)
	}
	if w.save.out {
		w.save.cancel()
		<-w.save.done
	}
}
