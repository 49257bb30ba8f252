// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddedAnnotation holds who added which debug container to a pod and when, as JSON of [DebugAdditions]. Only the API
// server writes it; what clients send in it is ignored, so that a client that sends back a pod as it read it earlier is
// not refused.
const AddedAnnotation = "wherry.dev/debug-added"

// DebugAddition says who added a debug container, or last ran it again, and when, to the second.
type DebugAddition struct {
	By string      `json:"by"`
	At metav1.Time `json:"at"`
}

// DebugAdditions are the last additions of a pod's debug containers, by container name.
type DebugAdditions map[string]DebugAddition

// DebugAdditionsOf reads a pod's [AddedAnnotation]. It has no entry for containers that were added by a version of this
// program that did not write it yet.
func DebugAdditionsOf(pod *corev1.Pod) DebugAdditions {
	var all DebugAdditions
	if text := pod.Annotations[AddedAnnotation]; text == "" || json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	return all
}

// NoteDebugAddition puts in a pod's [AddedAnnotation] that a debug container was added.
func NoteDebugAddition(pod *corev1.Pod, container string, a DebugAddition) error {
	all := DebugAdditionsOf(pod)
	if all == nil {
		all = DebugAdditions{}
	}
	all[container] = a
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[AddedAnnotation] = string(text)
	return nil
}
