// SPDX-License-Identifier: Apache-2.0

package ways

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// EndOf is how the run of a debug container ended that a client asked for with a word of its own; nil if it goes on, or
// if what the pod shows under the name is another run (DC-06).
func EndOf(pod *corev1.Pod, name, request string) *corev1.ContainerStateTerminated {
	if request == "" || podspec.DebugRunsOf(pod)[name].Request != request {
		return nil
	}
	return podspec.DebugStateOf(pod, name).Terminated
}

// Replaced reports whether the run that a client asked for with a word of its own has given way to another one of its
// name. A server that is older keeps no such word, and then nothing is known of it.
func Replaced(pod *corev1.Pod, name, request string) bool {
	kept := podspec.DebugRunsOf(pod)[name].Request
	return request != "" && kept != "" && kept != request
}
