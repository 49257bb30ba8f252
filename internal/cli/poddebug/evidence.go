// SPDX-License-Identifier: Apache-2.0

package poddebug

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Evidence words what is known of the ends of a pod's containers, a line each; nothing of those that never ended.
func Evidence(pod *corev1.Pod, now time.Time) (lines []string) {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for i := range list {
			if line := obituary(&list[i], now); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func obituary(s *corev1.ContainerStatus, now time.Time) string {
	end := podspec.LastEnd(s)
	if end == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", s.Name, cause(end))
	if !end.FinishedAt.IsZero() {
		fmt.Fprintf(&b, " %s ago", duration.HumanDuration(now.Sub(end.FinishedAt.Time)))
	}
	if s.RestartCount > 0 {
		fmt.Fprintf(&b, ", restarted %d times", s.RestartCount)
	}
	switch {
	case s.State.Running != nil:
		b.WriteString(", running now")
	case s.State.Waiting != nil && s.State.Waiting.Reason != "":
		fmt.Fprintf(&b, ", now %s", s.State.Waiting.Reason)
	}
	if m := strings.TrimSpace(end.Message); m != "" {
		lines := strings.Split(m, "\n")
		fmt.Fprintf(&b, ": %s", lines[len(lines)-1])
	}
	return b.String()
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
