// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// killing is the event of a container's end, in the kubelet's words.
func killing(container string) Event {
	return Event{Reason: "Killing", Message: "Stopping container " + container}
}

// tellKilling tells that m is being brought to its end, before its preStop hook: for a fault of its own, or, without
// one, because nothing else is left for it to do.
func (v *view) tellKilling(m *member, fault string) {
	e := killing(m.spec.Name)
	if fault != "" {
		e.Message = fmt.Sprintf("Container %s %s", m.spec.Name, fault)
		if v.comesBack(m) {
			e.Message += ", will be restarted"
		}
	}
	v.tell(e)
}

// comesBack tells whether m, when it has been killed, is started again.
func (v *view) comesBack(m *member) bool {
	switch {
	case m.kind == podspec.Sidecar:
		return true
	case v.left.because != "":
		return false
	case m.kind == podspec.Main:
		return m.outdated(m.newest.SpecImage) || v.outgrown(m) || restarts(&v.Pod.Spec, m.spec, killedCode, true)
	}
	return v.Pod.Spec.RestartPolicy != corev1.RestartPolicyNever
}

// killedCode is the exit code of a container that had to be killed.
const killedCode = 137

// tellOverrun tells that the grace period is over and containers still run (SC-24). Of a pod without a record nobody
// would read it.
func (v *view) tellOverrun() {
	var late []string
	v.all(func(m *member) {
		if m.live() {
			late = append(late, m.spec.Name)
		}
	})
	if len(late) == 0 || v.Removed {
		return
	}
	slices.Sort(late)
	v.why("", "has run out of time to stop")
	v.tell(Event{Warning: true, Reason: "ExceededGracePeriod", Message: fmt.Sprintf(
		"Grace period of %s is over and containers still run: [%s]. They are killed now.", v.graceGiven(),
		strings.Join(late, " "))})
}

// graceGiven is how long the pod was given to stop.
func (v *view) graceGiven() time.Duration {
	if v.left.evicted {
		return v.left.grace
	}
	if p := v.Pod; p.DeletionTimestamp != nil && p.DeletionGracePeriodSeconds != nil {
		return podspec.Seconds(*p.DeletionGracePeriodSeconds)
	}
	return graceOf(v.Pod)
}
