// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/logind"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/shutdown"
)

// Words of a node that goes down: the kubelet's.
const (
	messageShutdown = "Pod was terminated in response to imminent node shutdown."
	refusedShutdown = "Pod was rejected as the node is shutting down."
	reasonShutdown  = "NodeShutdown"
)

// logindAgain is the pause before logind is asked again.
const logindAgain = time.Second

// ending is whether this node goes down, or is drained (PL-32).
type ending struct {
	busy sync.Mutex // taken by who ends pods: one at a time

	mu    sync.Mutex
	off   chan struct{}      // closed when the node takes pods again; nil: it does
	going map[types.UID]bool // pods that are waited for
	ended chan struct{}      // closed when none of them holds anything
}

// await has a channel closed when none of the pods holds anything any more.
func (e *ending) await(pods []types.UID) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.going, e.ended = map[types.UID]bool{}, make(chan struct{})
	for _, uid := range pods {
		e.going[uid] = true
	}
	return e.ended
}

// observed is called with what the node shows of a pod.
func (e *ending) observed(uid types.UID, seen *plan.Seen) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.going[uid] || holds(seen) {
		return
	}
	if delete(e.going, uid); len(e.going) == 0 {
		close(e.ended)
	}
}

func (e *ending) is() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.off != nil
}

// begin has the node end its pods and take no others. off is closed when that is called off; first is whether it did
// not do so before.
func (e *ending) begin() (off <-chan struct{}, first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if first = e.off == nil; first {
		e.off = make(chan struct{})
	}
	return e.off, first
}

// callOff has the node take pods again, and reports whether it did not before.
func (e *ending) callOff() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.off == nil {
		return false
	}
	close(e.off)
	e.off = nil
	return true
}

// errCalledOff is how a drain ends that was called off in the middle.
var errCalledOff = errors.New(
	"the drain was cancelled (wherry drain --undo): pods that are already stopping will stop, the others stay")

// awaitShutdown ends pods when the machine goes down, on logind's notice or on SIGPWR.
func (a *Agent) awaitShutdown(ctx context.Context) {
	if len(a.cfg.Shutdown) == 0 {
		return
	}
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { a.heedLogind(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.cfg.PowerFails:
			a.log.Warn("the machine's power fails")
			a.shutDown(ctx, true)
		}
	}
}

// heedLogind has logind wait for pods. Where there is none, signals and wherry drain are what is left.
func (a *Agent) heedLogind(ctx context.Context) {
	for logged := ""; ctx.Err() == nil; {
		err := logind.Watch(ctx, a.cfg.DataDir, shutdown.Total(a.cfg.Shutdown), a.shutDown)
		if errors.Is(err, logind.ErrNone) {
			a.log.Info("no systemd-logind: only SIGPWR and wherry drain start a graceful shutdown of the node", "why",
				err)
			return
		}
		if err != nil && err.Error() != logged {
			logged = err.Error()
			a.log.Warn("the machine's shutdown does not wait for pods", "err", err)
		}
		pause := time.NewTimer(logindAgain)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

// shutDown ends the pods of a node that goes down, and returns when they have ended or their time is over; with goes
// false it goes on after all.
func (a *Agent) shutDown(ctx context.Context, goes bool) {
	message := "Shutdown manager detected shutdown event"
	if !goes {
		message = "Shutdown manager detected shutdown cancellation"
	}
	a.nodeEvent(corev1.EventTypeNormal, reasonShutdown, message)
	_ = a.Drain(ctx, goes) // only ctx ends it before its time, or another who calls it off
}

// Drain ends the node's pods by their priority and takes no others until it is called with on false. It returns when
// they have ended, or had their time; the error is that of ctx, or says that it was called off meanwhile.
func (a *Agent) Drain(ctx context.Context, on bool) error {
	var off <-chan struct{}
	changed := false
	if on {
		off, changed = a.ending.begin()
	} else {
		changed = a.ending.callOff()
	}
	if changed {
		a.conditionsChanged()
		a.workers.Nudge("")
	}
	if !on {
		return nil
	}
	a.ending.busy.Lock()
	defer a.ending.busy.Unlock()
	periods := a.cfg.Shutdown
	if len(periods) == 0 { // each its own time
		periods = []shutdown.Period{{Grace: longestDrain}}
	}
	for _, g := range shutdown.Groups(periods, a.evictor.running()) {
		a.log.Info("ending pods", "priority", g.Priority, "pods", len(g.Pods), "most", g.Grace)
		if err := a.endGroup(ctx, off, g); err != nil {
			return err
		}
	}
	return nil
}

// longestDrain bounds a drain where no periods are given.
const longestDrain = time.Hour

// endGroup returns when the group's pods hold nothing any more, or their time is over, or off is closed.
func (a *Agent) endGroup(ctx context.Context, off <-chan struct{}, g shutdown.Group) error {
	select {
	case <-off: // while another drain had the turn
		return errCalledOff
	default:
	}
	most := atOnce
	var going []types.UID
	for _, pod := range g.Pods {
		going = append(going, pod.UID)
		most = max(most, g.GraceOf(pod))
	}
	ended := a.ending.await(going)
	now := time.Now()
	for _, pod := range g.Pods {
		a.workers.Evict(pod.UID, plan.Eviction{Reason: plan.ReasonTerminated, Message: messageShutdown, At: now,
			Grace: max(g.GraceOf(pod), atOnce)})
	}
	// What follows the last kill takes a moment, of the group's time if there is more of it.
	over := time.NewTimer(min(max(g.Grace, atOnce), most+evictPatience))
	defer over.Stop()
	select {
	case <-ended:
	case <-over.C:
		a.log.Warn("pods had their time and have not ended", "priority", g.Priority)
	case <-off:
		return errCalledOff
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
