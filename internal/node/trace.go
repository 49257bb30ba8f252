// SPDX-License-Identifier: Apache-2.0

package node

import (
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/history"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/work"
)

// Trace is part of [work.Node].
func (a *Agent) Trace(pod *corev1.Pod, e work.Event) {
	a.metrics.Trace(pod, e)
	a.history.Trace(pod, e)
	switch {
	case e.Seen != nil:
		a.observed(pod.UID, e.Seen)
	case e.Left:
		a.observed(pod.UID, &plan.Seen{})
	}
}

// observed is called with what the node shows of a pod: those that are being evicted have gone when they hold nothing.
func (a *Agent) observed(uid types.UID, seen *plan.Seen) {
	a.evictor.observed(uid, seen)
	a.ending.observed(uid, seen)
	if !holds(seen) {
		a.left(uid)
	}
}

// newHistory takes up what an earlier agent noted of the node's pods. That some of it cannot be read keeps no pod from
// running.
func (a *Agent) newHistory() *history.Recorder {
	has := func(uid string) bool { return a.workers != nil && a.workers.Has(types.UID(uid)) }
	r, err := history.New(history.Config{Dir: filepath.Join(a.cfg.DataDir, "history"), Node: a.cfg.NodeName, Has: has,
		Logger: a.log, Names: a.cfg.Names}, time.Now())
	if err != nil {
		a.log.Warn("cannot read all timelines of pods", "err", err)
	}
	return r
}
