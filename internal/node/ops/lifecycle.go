// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	specs := map[plan.ProbeKind]*corev1.Probe{plan.StartupProbe: c.spec.StartupProbe,
		plan.ReadinessProbe: c.spec.ReadinessProbe, plan.LivenessProbe: c.spec.LivenessProbe}
	spec := specs[t.Probe]
	if spec == nil {
		return fmt.Errorf("container %s has no %s probe", t.Container, t.Probe)
	}
	result, err := r.Prober.Try(ctx, to, spec)
	switch {
	case err != nil:
		return err
	case result.Warning:
		r.Events.Event(t.Pod, c.path, corev1.EventTypeWarning, "ProbeWarning",
			fmt.Sprintf("%s probe warning: %s", title(t.Probe), result.Message))
	case result.Verdict == probe.Failure:
		if !t.Early { // between ticks a no is no news
			r.Events.Event(t.Pod, c.path, corev1.EventTypeWarning, "Unhealthy",
				fmt.Sprintf("%s probe failed: %s", title(t.Probe), result.Message))
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
	handler, reason := l.PostStart, "FailedPostStartHook"
	if t.Verb == plan.PreStop {
		handler, reason = l.PreStop, reasonPreStop
	}
	if handler == nil {
		return nil
	}
	r.keepVerdict(t)
	ended := r.watchGrace(t, c.path)
	err = r.Hooks.Run(ctx, to, handler)
	if told := ended(err); err != nil && !told && ctx.Err() == nil {
		r.Events.Event(t.Pod, c.path, corev1.EventTypeWarning, reason, err.Error())
	}
	return err
}

// reasonPreStop is the reason of events about a preStop hook that failed.
const reasonPreStop = "FailedPreStopHook"

// watchGrace tells of a preStop hook that is still running when the grace period is over. It is not ended for that: its
// container is told to stop then, and it ends with its container (PL-18). What it returns is to be called with how the
// hook ended, and says whether that had been told.
func (r *Runner) watchGrace(t work.Task, path string) (ended func(error) bool) {
	if t.Until.IsZero() {
		return func(error) bool { return false }
	}
	end, told := make(chan error), make(chan bool)
	tell := func() {
		r.Events.Event(t.Pod, path, corev1.EventTypeWarning, reasonPreStop,
			"hook not completed in grace period; it ends with its container")
	}
	go func() {
		until := t.Until
		over := time.NewTimer(time.Until(until))
		defer over.Stop()
		for {
			select {
			case until = <-t.Sooner:
				over.Reset(time.Until(until))
			case <-over.C:
				tell()
				<-end
				told <- true
				return
			case err := <-end:
				late := err != nil && !time.Now().Before(until)
				if late { // its container was quick to stop
					tell()
				}
				told <- late
				return
			}
		}
	}()
	return func(err error) bool {
		end <- err
		return <-told
	}
}
