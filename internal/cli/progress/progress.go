// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/exitcode"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Line is one thing that happened.
type Line struct {
	Container string // empty: the pod itself
	Text      string
	Trouble   bool // worth a warning colour
	Slow      bool // the beginning of what takes its time: worth a line where little is shown
	Cause     bool // what stands in the way, which comes and goes with each try: worth showing once
}

// Diff returns what happened between old (nil at first) and new, in the order in which things happen to a pod.
func Diff(old, new *corev1.Pod) []Line {
	if old == nil {
		old = &corev1.Pod{}
	}
	var lines []Line
	add := func(l Line) { lines = append(lines, l) }

	scheduled(old, new, add)
	if cause := obstacle(new); cause != "" && cause != obstacle(old) {
		add(Line{Text: "cannot start yet: " + cause, Trouble: true, Cause: true})
	}
	if !podspec.IsTrue(&old.Status, corev1.PodReadyToStartContainers) &&
		podspec.IsTrue(&new.Status, corev1.PodReadyToStartContainers) {
		add(Line{Text: "sandbox is up" + address(new)})
	}
	before := statuses(old)
	for _, s := range ordered(new) {
		container(before[s.Name], s, add)
	}
	if !podspec.IsTrue(&old.Status, corev1.PodReady) && podspec.IsTrue(&new.Status, corev1.PodReady) {
		add(Line{Text: "ready" + address(new)})
	}
	if old.Status.Reason != new.Status.Reason && new.Status.Reason != "" {
		add(Line{Text: reasoned(new.Status.Reason, new.Status.Message), Trouble: true})
	}
	if old.DeletionTimestamp == nil && new.DeletionTimestamp != nil {
		add(Line{Text: "is being deleted"})
	}
	return lines
}

func scheduled(old, new *corev1.Pod, add func(Line)) {
	if old.Spec.NodeName == "" && new.Spec.NodeName != "" {
		add(Line{Text: "scheduled to node " + new.Spec.NodeName})
		return
	}
	c := podspec.Condition(&new.Status, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse {
		return
	}
	if was := podspec.Condition(&old.Status, corev1.PodScheduled); was == nil || was.Message != c.Message {
		add(Line{Text: "waiting for a node: " + c.Message, Trouble: true, Cause: true})
	}
}

// obstacle is what keeps the pod's sandbox from being made: a volume that cannot be had, or a fault of the sandbox
// itself. The node says it in each waiting container's message, under the reason of a pod on its way.
func obstacle(pod *corev1.Pod) string {
	for _, s := range ordered(pod) {
		if w := s.State.Waiting; w != nil && quiet[w.Reason] && w.Message != "" {
			return strings.TrimSpace(w.Message)
		}
	}
	return ""
}

func container(old, new corev1.ContainerStatus, add func(Line)) {
	say := func(trouble bool, format string, args ...any) {
		add(Line{Container: new.Name, Text: fmt.Sprintf(format, args...), Trouble: trouble})
	}
	if new.RestartCount > old.RestartCount {
		if t := new.LastTerminationState.Terminated; t != nil && old.State.Terminated == nil {
			say(t.ExitCode != 0, "%s", ended(t))
		}
	}
	switch s := new.State; {
	case s.Waiting != nil:
		if old.State.Waiting != nil && *old.State.Waiting == *s.Waiting || quiet[s.Waiting.Reason] {
			return
		}
		add(Line{Container: new.Name, Text: reasoned(s.Waiting.Reason, s.Waiting.Message), Trouble: true, Cause: true})
	case s.Running != nil:
		if old.State.Running != nil && new.RestartCount == old.RestartCount {
			return
		}
		if new.RestartCount > 0 {
			say(false, "restarted (restart %d)", new.RestartCount)
		} else {
			say(false, "started")
		}
	case s.Terminated != nil:
		if old.State.Terminated != nil && new.RestartCount == old.RestartCount {
			return
		}
		say(s.Terminated.ExitCode != 0, "%s", ended(s.Terminated))
	}
}

// quiet are the waiting reasons of a pod that is on its way.
var quiet = map[string]bool{"": true, "ContainerCreating": true, "PodInitializing": true}

func ended(t *corev1.ContainerStateTerminated) string {
	var b strings.Builder
	switch {
	case t.Reason == "StartError":
		return strings.TrimSuffix(fmt.Sprintf("could not be started (exit code %d): %s", t.ExitCode,
			strings.TrimSpace(exitcode.Plain(t.Message))), ": ")
	case t.Reason == "OOMKilled":
		fmt.Fprintf(&b, "killed because it used more memory than its limit (OOMKilled, exit code %d)", t.ExitCode)
	case t.ExitCode == 0:
		b.WriteString("completed")
	case t.Signal != 0:
		fmt.Fprintf(&b, "ended by signal %d (exit code %d)", t.Signal, t.ExitCode)
	case t.ExitCode == 137:
		b.WriteString("killed (exit code 137)")
	default:
		fmt.Fprintf(&b, "failed with exit code %d", t.ExitCode)
	}
	// Both times are whole seconds: a difference of one may have been a moment.
	if ran := t.FinishedAt.Sub(t.StartedAt.Time).Round(time.Second); !t.StartedAt.IsZero() && ran > time.Second {
		fmt.Fprintf(&b, " after %s", ran)
	}
	if m := strings.TrimSpace(t.Message); m != "" {
		b.WriteString(": " + m)
	}
	return b.String()
}

func reasoned(reason, message string) string {
	if message == "" {
		return reason
	}
	if reason == "RunContainerError" || reason == "CreateContainerError" { // the runtime's words, not a program's
		message = exitcode.Plain(message)
	}
	return reason + ": " + strings.TrimSpace(message)
}

func address(pod *corev1.Pod) string {
	if pod.Status.PodIP == "" {
		return ""
	}
	return ", address " + pod.Status.PodIP
}

// ordered returns the statuses of init, main and ephemeral containers in spec order.
func ordered(pod *corev1.Pod) []corev1.ContainerStatus {
	known := statuses(pod)
	var out []corev1.ContainerStatus
	for ref := range podspec.Containers(&pod.Spec) {
		if s, ok := known[ref.Container.Name]; ok {
			out = append(out, s)
		}
	}
	return out
}

func statuses(pod *corev1.Pod) map[string]corev1.ContainerStatus {
	out := map[string]corev1.ContainerStatus{}
	for _, s := range podspec.Statuses(&pod.Status) {
		out[s.Name] = *s
	}
	return out
}

// Ready reports whether the pod's Ready condition is true.
func Ready(pod *corev1.Pod) bool { return podspec.IsTrue(&pod.Status, corev1.PodReady) }
