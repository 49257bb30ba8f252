// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/wherryproject/wherry/internal/oneline"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Dead are the containers of a pod that have ended and do not run, and that left no message: what they printed last
// says more.
func Dead(pod *corev1.Pod) (names []string) {
	for _, s := range podspec.OwnStatuses(&pod.Status) {
		end := podspec.LastEnd(s)
		if end != nil && s.State.Running == nil && strings.TrimSpace(end.Message) == "" &&
			(end.ExitCode != 0 || s.State.Waiting != nil) {
			names = append(names, s.Name)
		}
	}
	return names
}

// Evidence words what is known of the ends of a pod's containers, a line each; nothing of those that never ended.
// printed is what containers printed last, by their names.
func Evidence(pod *corev1.Pod, now time.Time, printed map[string]string) (lines []string) {
	for _, s := range podspec.Statuses(&pod.Status) {
		if line := lastTermination(s, now, printed[s.Name]); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func lastTermination(s *corev1.ContainerStatus, now time.Time, printed string) string {
	end := podspec.LastEnd(s)
	if end == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", s.Name, cause(end))
	if !end.FinishedAt.IsZero() {
		fmt.Fprintf(&b, " %s ago", duration.HumanDuration(now.Sub(end.FinishedAt.Time)))
	}
	switch {
	case s.RestartCount == 1:
		b.WriteString(", restarted once")
	case s.RestartCount > 1:
		fmt.Fprintf(&b, ", restarted %d times", s.RestartCount)
	}
	switch {
	case s.State.Running != nil:
		b.WriteString(", running now")
	case s.State.Waiting != nil && s.State.Waiting.Reason != "":
		fmt.Fprintf(&b, ", now %s", s.State.Waiting.Reason)
	}
	if last := lastLine(end.Message); last != "" {
		fmt.Fprintf(&b, ": %s", last)
	} else if last := lastLine(printed); last != "" {
		fmt.Fprintf(&b, ", last log line: %s", last)
	}
	return b.String()
}

// maxLine bounds a container's own words.
const maxLine = 200

// lastLine is the last line of a container's words, without what a terminal would obey.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return oneline.Cut(text[strings.LastIndexByte(text, '\n')+1:], maxLine)
}

// cause is what ended it.
func cause(end *corev1.ContainerStateTerminated) string {
	switch {
	case end.Reason == "OOMKilled":
		return "out of memory (OOMKilled)"
	case end.ExitCode > 128 && end.ExitCode < 160:
		return fmt.Sprintf("killed by signal %d (%s)", end.ExitCode-128, signalName(int(end.ExitCode)-128))
	case end.ExitCode == 0:
		return "completed"
	case end.Reason != "" && end.Reason != "Error":
		return fmt.Sprintf("exit code %d (%s)", end.ExitCode, end.Reason)
	}
	return fmt.Sprintf("exit code %d", end.ExitCode)
}

func signalName(n int) string { return syscall.Signal(n).String() }
