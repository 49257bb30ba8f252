// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
)

// What happens at one instant is shown in this order, causes first: between goroutines there is no other.
const (
	byScript = iota
	byReturn
	byStatus
	byEvent
	byStart
)

// trace is what happened, with when.
type trace struct {
	begin time.Time
	mu    sync.Mutex
	lines []line
}

type line struct {
	at   time.Duration
	kind int
	text string
}

func newTrace() *trace { return &trace{begin: time.Now()} }

func (t *trace) add(kind int, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line{time.Since(t.begin), kind, fmt.Sprintf(format, args...)})
}

// String gives one line per happening, with the seconds since the beginning.
func (t *trace) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := slices.Clone(t.lines)
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.text, b.text))
	})
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%9.3f %s\n", l.at.Seconds(), l.text)
	}
	return b.String()
}

func describe(o plan.Op, begin time.Time) string {
	s := o.Verb.String()
	switch {
	case o.Container != "":
		s += fmt.Sprintf(" %s/%d", o.Container, o.Attempt)
	case o.Verb == plan.RunSandbox || o.Verb == plan.StopSandbox || o.Verb == plan.RemoveSandbox:
		s += fmt.Sprintf(" %d", o.Attempt)
	}
	if o.Verb == plan.Probe {
		s += " " + o.Probe.String()
		if o.Early {
			s += " early"
		}
	}
	if !o.Until.IsZero() {
		s += fmt.Sprintf(" until %.3f", o.Until.Sub(begin).Seconds())
	}
	return s
}

// difference is a status in one line, with those conditions that changed; "" if nothing did.
func difference(old, now *corev1.PodStatus) string {
	was, is := summary(old), summary(now)
	var changed []string
	for i := range now.Conditions {
		c := &now.Conditions[i]
		if !slices.ContainsFunc(old.Conditions, func(o corev1.PodCondition) bool {
			return o.Type == c.Type && o.Status == c.Status && o.Reason == c.Reason && o.Message == c.Message
		}) {
			text := fmt.Sprintf("%s=%s", c.Type, c.Status)
			if c.Reason != "" {
				text += "(" + c.Reason + ")"
			}
			changed = append(changed, text)
		}
	}
	slices.Sort(changed)
	if was == is && len(changed) == 0 && old.PodIP == now.PodIP {
		return ""
	}
	if old.PodIP == "" && now.PodIP != "" {
		changed = append(changed, "PodIP")
	}
	if len(changed) > 0 {
		is += " | " + strings.Join(changed, " ")
	}
	return is
}

func summary(s *corev1.PodStatus) string {
	var b strings.Builder
	b.WriteString(string(s.Phase))
	if s.Reason != "" {
		fmt.Fprintf(&b, "(%s)", s.Reason)
	}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			c := &list[i]
			fmt.Fprintf(&b, " %s=%s", c.Name, stateOf(c.State))
			if c.Ready {
				b.WriteString(",ready")
			}
			if c.RestartCount > 0 {
				fmt.Fprintf(&b, ",restarts:%d", c.RestartCount)
			}
			if last := stateOf(c.LastTerminationState); last != "" {
				fmt.Fprintf(&b, ",last:%s", last)
			}
		}
	}
	return b.String()
}

func stateOf(s corev1.ContainerState) string {
	switch {
	case s.Waiting != nil && s.Waiting.Message != "":
		return fmt.Sprintf("%s[%s]", s.Waiting.Reason, s.Waiting.Message)
	case s.Waiting != nil:
		return s.Waiting.Reason
	case s.Running != nil:
		return "running"
	case s.Terminated != nil && s.Terminated.Message != "":
		return fmt.Sprintf("exit%d(%s)[%s]", s.Terminated.ExitCode, s.Terminated.Reason, s.Terminated.Message)
	case s.Terminated != nil:
		return fmt.Sprintf("exit%d(%s)", s.Terminated.ExitCode, s.Terminated.Reason)
	}
	return ""
}
