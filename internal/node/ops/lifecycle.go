// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/hook"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/probe"
	"github.com/wherryproject/wherry/internal/node/work"
)

// target finds the container attempt that a probe or hook is for. One that is gone has no need of either.
func (r *Runner) target(t work.Task) (probe.Target, member, error) {
	c, err := containerOf(t.Pod, t.Container)
	if err != nil {
		return probe.Target{}, c, err
	}
	id := existing(t)
	if id == "" {
		return probe.Target{}, c, fmt.Errorf("container %s is gone", t.Container)
	}
	out := probe.Target{Pod: t.Pod, Container: c.spec, ContainerID: id}
	ips := r.Node.IPs
	if !t.Pod.Spec.HostNetwork {
		ips = nil
		if box, err := readyBox(t); err == nil {
			ips = box.IPs
		}
	}
	if len(ips) > 0 {
		out.PodIP = ips[0]
	}
	return out, c, nil
}

// tryProbe makes one try of a probe (PL-04).
func (r *Runner) tryProbe(ctx context.Context, t work.Task) error {
	to, c, err := r.target(t)
	if err != nil {
		return err
	}
	specs := map[plan.ProbeKind]*corev1.Probe{plan.StartupProbe: c.spec.StartupProbe, plan.ReadinessProbe: c.spec.ReadinessProbe,
		plan.LivenessProbe: c.spec.LivenessProbe}
	spec := specs[t.Probe]
	if spec == nil {
		return fmt.Errorf("container %s has no %s probe", t.Container, t.Probe)
	}
	result, err := r.Prober.Try(ctx, to, spec)
	switch {
	case err != nil:
		return err
	case result.Warning:
		r.Events.Event(t.Pod, c.path, corev1.EventTypeWarning, "ProbeWarning", fmt.Sprintf("%s probe warning: %s", title(t.Probe), result.Message))
	case result.Verdict == probe.Failure:
		if !t.Early { // between ticks a no is no news
			r.Events.Event(t.Pod, c.path, corev1.EventTypeWarning, "Unhealthy", fmt.Sprintf("%s probe failed: %s", title(t.Probe), result.Message))
		}
		return &work.ProbeFailure{Message: result.Message}
	}
	return nil
}

// title is a probe's name at the start of a sentence.
func title(k plan.ProbeKind) string {
	switch k {
	case plan.StartupProbe:
		return "Startup"
	case plan.LivenessProbe:
		return "Liveness"
	}
	return "Readiness"
}

// runHook runs a postStart or preStop hook (PL-04, SC-03, SC-10).
func (r *Runner) runHook(ctx context.Context, t work.Task) error {
	to, c, err := r.target(t)
	if err != nil {
		return err
	}
	l := c.spec.Lifecycle
	if l == nil {
		return nil
	}
	handler, reason, until := l.PostStart, "FailedPostStartHook", time.Time{}
	if t.Verb == plan.PreStop {
		handler, reason, until = l.PreStop, "FailedPreStopHook", t.Until
	}
	if handler == nil {
		return nil
	}
	r.keepVerdict(t)
	err = r.Hooks.Run(ctx, to, handler, until)
	switch {
	case err == nil:
	case ctx.Err() == nil || errors.Is(err, hook.ErrNotCompleted):
		r.Events.Event(t.Pod, c.path, corev1.EventTypeWarning, reason, err.Error())
	case !until.IsZero() && !time.Now().Before(until): // the planner was quicker than the deadline
		r.Events.Event(t.Pod, c.path, corev1.EventTypeWarning, reason, hook.ErrNotCompleted.Error())
	}
	return err
}
