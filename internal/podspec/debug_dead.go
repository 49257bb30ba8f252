// SPDX-License-Identifier: Apache-2.0

package podspec

import corev1 "k8s.io/api/core/v1"

// IsDead reports whether what the user wants to look at is over: the pod, or the container that is named, or else every
// main container while some container has run and ended.
func IsDead(pod *corev1.Pod, target string) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	ended := false
	for _, s := range OwnStatuses(&pod.Status) {
		if target != "" && s.Name == target {
			return s.State.Running == nil && LastEnd(s) != nil
		}
		ended = ended || failed(s)
	}
	if target != "" {
		return false // unknown, or not started yet: the server has the right words
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].State.Running != nil {
			return false
		}
	}
	return ended
}

// failed reports whether a container ended badly, and does not run again.
func failed(s *corev1.ContainerStatus) bool {
	end := LastEnd(s)
	return end != nil && s.State.Running == nil && end.ExitCode != 0
}

// LastEnd is how a container ended when it last did, or nil.
func LastEnd(s *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}
