// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// ended counts the containers that a status shows as ended and the one before did not: each run once, also where the
// next run of the container has begun by then.
func (m *Metrics) ended(pod *corev1.Pod, from, to *corev1.PodStatus) {
	known := map[string]bool{"": true} // what was never made has no id
	for _, s := range podspec.Statuses(from) {
		for _, t := range endsOf(s) {
			known[t.ContainerID] = true
		}
	}
	for _, s := range podspec.Statuses(to) {
		for _, t := range endsOf(s) {
			if !known[t.ContainerID] {
				known[t.ContainerID] = true
				m.terminated.WithLabelValues(typeOf(pod, s.Name), strconv.Itoa(int(t.ExitCode)), t.Reason).Inc()
			}
		}
	}
}

// endsOf are the ends of a container that its status shows: of this run and the one before.
func endsOf(s *corev1.ContainerStatus) (out []*corev1.ContainerStateTerminated) {
	for _, t := range []*corev1.ContainerStateTerminated{s.LastTerminationState.Terminated, s.State.Terminated} {
		if t != nil {
			out = append(out, t)
		}
	}
	return out
}
