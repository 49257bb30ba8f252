// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// together is how far apart two ends may be stored that were one: times are stored in whole seconds.
const together = 2 * time.Second

// WhyEnded says why the last run of a debug container was ended from outside, or nothing if its command ended by
// itself.
func WhyEnded(pod *corev1.Pod, name string) string {
	end := podspec.DebugStateOf(pod, name).Terminated
	if end == nil || end.ExitCode <= 128 { // nobody killed it
		return ""
	}
	if pod.DeletionTimestamp != nil {
		return fmt.Sprintf("pod %s is being deleted", pod.Name)
	}
	if ends := podspec.DebugEnds(pod, name); !ends.IsZero() && !end.FinishedAt.Add(together).Before(ends) {
		if by := podspec.DebugRunsOf(pod)[name].StoppedBy; by != "" {
			return fmt.Sprintf("%s stopped debug container %s", by, name)
		}
		return fmt.Sprintf("debug container %s reached its time limit", name)
	}
	if end.Reason == "OOMKilled" {
		return fmt.Sprintf("debug container %s was killed because it ran out of memory (OOMKilled)", name)
	}
	return targetEnded(pod, name, end)
}

// targetEnded: the kernel ends everything in a PID namespace with its first process.
func targetEnded(pod *corev1.Pod, name string, end *corev1.ContainerStateTerminated) string {
	ref, ok := podspec.FindContainer(&pod.Spec, name)
	if !ok || ref.Target == "" || end.ExitCode != 137 {
		return ""
	}
	s := podspec.FindStatus(&pod.Status, ref.Target)
	if s == nil {
		return ""
	}
	if last := podspec.LastEnd(s); last == nil || last.FinishedAt.Sub(end.FinishedAt.Time).Abs() > together {
		return ""
	}
	return fmt.Sprintf("container %s has ended, and with it everything that had joined its processes", ref.Target)
}
