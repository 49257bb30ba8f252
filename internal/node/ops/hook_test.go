// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/hook"
	"github.com/wherryproject/wherry/internal/node/plan"
)

// TestPreStopIsNotEnded: a preStop hook that outlives its time goes on; an event tells once that it is late, also when the time was
// cut, and one of another failure comes only if it is not late (PL-18).
func TestPreStopIsNotEnded(t *testing.T) {
	const late = "hook not completed in grace period"
	for _, c := range []struct {
		name         string
		command      []string
		until, cut   time.Duration // cut: from the start, the time is over at once
		cancel       time.Duration // the container's end
		took         time.Duration
		events       []string
		wantsSuccess bool
	}{
		{name: "in time", command: []string{"x", "run_for=3s"}, until: 4 * time.Second, took: 3 * time.Second, wantsSuccess: true},
		{name: "late", command: []string{"x", "run_for=3s"}, until: time.Second, took: 3 * time.Second, events: []string{late}, wantsSuccess: true},
		{name: "late by a shorter grace", command: []string{"x", "run_for=3s"}, until: time.Hour, cut: 2 * time.Second, took: 3 * time.Second, events: []string{late}, wantsSuccess: true},
		{name: "failed", command: []string{"x", "run_for=3s", "exit_code=4"}, until: 4 * time.Second, took: 3 * time.Second, events: []string{"exited with 4"}},
		{name: "late, and failed", command: []string{"x", "run_for=3s", "exit_code=137"}, until: time.Second, took: 3 * time.Second, events: []string{late}},
		{name: "its container ended", command: []string{"x", "run_for=1h"}, until: 4 * time.Second, cancel: 3 * time.Second, took: 3 * time.Second},
		{name: "its container ended late", command: []string{"x", "run_for=1h"}, until: 2 * time.Second, cancel: 3 * time.Second, took: 3 * time.Second, events: []string{late}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(p *corev1.Pod) {
					p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: c.command}}}
				})
				b.Hooks = hook.New(b.CRI, hook.Notices{})
				b.must(plan.Op{Verb: plan.PrepareVolumes})
				b.must(plan.Op{Verb: plan.RunSandbox})
				b.must(plan.Op{Verb: plan.PullImage, Container: "main"})
				b.must(plan.Op{Verb: plan.StartContainer, Container: "main"})
				b.events = nil
				task := b.task(plan.Op{Verb: plan.PreStop, Container: "main", Until: time.Now().Add(c.until)})
				sooner := make(chan time.Time, 1)
				task.Sooner = sooner
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				if c.cut > 0 {
					time.AfterFunc(c.cut, func() { sooner <- time.Now() })
				}
				began := time.Now()
				err := b.Do(ctx, task)
				if took := time.Since(began); took != c.took || (err == nil) != c.wantsSuccess {
					t.Errorf("took %s, want %s: %v", took, c.took, err)
				}
				same := func(got, want string) bool { return strings.Contains(got, want) }
				if !slices.EqualFunc(b.events, c.events, same) {
					t.Errorf("events %q, want %q", b.events, c.events)
				}
			})
		})
	}
}
