// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// DC-10: kinds are written as words, which records that are kept have, and read from them; what is not known is a main container.
func TestKindWords(t *testing.T) {
	text, err := json.Marshal([]Kind{Main, Init, Sidecar, Ephemeral})
	if want := `["main","init","sidecar","ephemeral"]`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	var kinds []Kind
	if err := json.Unmarshal([]byte(`["init","sidecar","","ephemeral","of a later version","main"]`), &kinds); err != nil ||
		!slices.Equal(kinds, []Kind{Init, Sidecar, Main, Ephemeral, Main, Main}) {
		t.Errorf("%v, %v", kinds, err)
	}
}

// The walks go through every list in order, end when they are told to, and point into the status.
func TestStatuses(t *testing.T) {
	s := corev1.PodStatus{
		EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "debug"}},
		ContainerStatuses:          []corev1.ContainerStatus{{Name: "main"}, {Name: "helper"}},
		InitContainerStatuses:      []corev1.ContainerStatus{{Name: "setup"}},
	}
	var all, own []string
	for kind, c := range Statuses(&s) {
		all = append(all, kind.String()+" "+c.Name)
	}
	for kind, c := range OwnStatuses(&s) {
		own = append(own, kind.String()+" "+c.Name)
	}
	if want := []string{"init setup", "main main", "main helper", "ephemeral debug"}; !slices.Equal(all, want) || !slices.Equal(own, want[:3]) {
		t.Errorf("all %q, own %q", all, own)
	}
	for range Statuses(&s) {
		break
	}
	for range OwnStatuses(&s) {
		break
	}
	if c := FindStatus(&s, "helper"); c != &s.ContainerStatuses[1] || FindStatus(&s, "other") != nil {
		t.Errorf("helper is %+v", c)
	}
	pod := corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "i"}}, Containers: []corev1.Container{{Name: "c"}},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e"}}}}}
	var names []string
	for ref := range OwnContainers(&pod.Spec) {
		names = append(names, ref.Path().String()+" "+ref.Container.Name)
	}
	if want := []string{"spec.initContainers[0] i", "spec.containers[0] c"}; !slices.Equal(names, want) {
		t.Errorf("own containers %q", names)
	}
}
