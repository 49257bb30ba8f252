// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/oneline"
)

// maxNote bounds a word of a container's status in a note.
const maxNote = 200

// DebugNote tells the user of a debug container that has joined no other one's processes why not, and how it could
// (DC-15); nothing where there is nothing more to see.
func DebugNote(pod *corev1.Pod, name string) string {
	ref, ok := FindContainer(&pod.Spec, name)
	if !ok || ref.Target != "" || NamespaceModes(pod).PID != NamespaceContainer {
		return ""
	}
	if len(pod.Spec.Containers) == 1 {
		main := pod.Spec.Containers[0].Name
		return oneline.Cut(fmt.Sprintf("container %s is not running%s: its processes cannot be seen", main,
			why(FindStatus(&pod.Status, main))), maxNote)
	}
	var up []string
	for ref := range Containers(&pod.Spec) {
		if s := FindStatus(&pod.Status, ref.Container.Name); ref.Kind != Ephemeral && s != nil &&
			s.State.Running != nil {
			up = append(up, ref.Container.Name)
		}
	}
	if len(up) == 0 {
		return "no container of the pod is running: there are no processes to see"
	}
	return fmt.Sprintf("the pod has several containers; to see the processes of one, use --target %s",
		strings.Join(up, ", or --target "))
}

// why is what a status says of a container that does not run.
func why(s *corev1.ContainerStatus) string {
	if s == nil || s.State.Waiting == nil || s.State.Waiting.Reason == "" {
		return stateWord(s)
	}
	text := s.State.Waiting.Reason
	if s.State.Waiting.Message != "" {
		text += ": " + s.State.Waiting.Message
	}
	return " (" + text + ")"
}
