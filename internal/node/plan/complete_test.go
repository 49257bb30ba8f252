// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// PL-21: mounts are told as they are made.
func TestMountStatuses(t *testing.T) {
	enabled, possible, disabled := corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyDisabled
	for name, row := range map[string]struct {
		mount corev1.VolumeMount
		can   bool
		want  *corev1.RecursiveReadOnlyMode
	}{
		"writable":                {corev1.VolumeMount{}, true, nil},
		"read-only":               {corev1.VolumeMount{ReadOnly: true}, true, &disabled},
		"enabled":                 {corev1.VolumeMount{ReadOnly: true, RecursiveReadOnly: &enabled}, true, &enabled},
		"if possible, and it is":  {corev1.VolumeMount{ReadOnly: true, RecursiveReadOnly: &possible}, true, &enabled},
		"if possible, and it not": {corev1.VolumeMount{ReadOnly: true, RecursiveReadOnly: &possible}, false, &disabled},
	} {
		row.mount.Name, row.mount.MountPath = "v", "/v"
		v := &view{Input: Input{Node: Node{RecursiveReadOnly: row.can}}}
		want := []corev1.VolumeMountStatus{{Name: "v", MountPath: "/v", ReadOnly: row.mount.ReadOnly, RecursiveReadOnly: row.want}}
		if got := v.mounts([]corev1.VolumeMount{row.mount}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// PL-21: each condition of the node's says of which generation it speaks, also that the pod is scheduled; those of others are kept as
// they are.
func TestConditionsOfAGeneration(t *testing.T) {
	theirs := corev1.PodCondition{Type: "example.com/ok", Status: corev1.ConditionTrue, ObservedGeneration: 1}
	pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "i"}}, Containers: []corev1.Container{{Name: "m"}}}}
	pod.Generation = 3
	pod.Status.Conditions = []corev1.PodCondition{theirs,
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, ObservedGeneration: 1}}
	found := Next(Input{Pod: pod}).Status
	if got := find(found.Conditions, theirs.Type); got == nil || *got != theirs {
		t.Errorf("another's condition: %+v", got)
	}
	for kind, reason := range map[corev1.PodConditionType]string{
		corev1.PodScheduled: "", corev1.PodReadyToStartContainers: "PodSandboxNotReady", corev1.PodInitialized: "ContainersNotInitialized",
		corev1.ContainersReady: "ContainersNotReady", corev1.PodReady: "ContainersNotReady",
	} {
		c := find(found.Conditions, kind)
		if c == nil || c.ObservedGeneration != 3 || c.Reason != reason || kind == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			t.Errorf("%s: %+v", kind, c)
		}
	}
}

// PL-21: what is missing for containers to start is said in the kubelet's words, which stay when a pod that is over is cleared away.
func TestSandboxCondition(t *testing.T) {
	stored := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, Reason: "PodSandboxNotReady", Message: "as it was"}
	lost, ready := &Sandbox{ID: "s"}, &Sandbox{ID: "s", Ready: true}
	for name, row := range map[string]struct {
		box             *Sandbox
		was             []corev1.PodCondition
		over            bool
		reason, message string
	}{
		"none yet":          {nil, nil, false, "PodSandboxNotReady", "no pod sandbox exists"},
		"it has died":       {lost, nil, false, "PodSandboxNotReady", "pod sandbox is not ready"},
		"it is there":       {ready, []corev1.PodCondition{stored}, false, "", ""},
		"made again":        {lost, []corev1.PodCondition{stored}, false, "PodSandboxNotReady", "pod sandbox is not ready"},
		"over, and removed": {nil, []corev1.PodCondition{stored}, true, "PodSandboxNotReady", "as it was"},
		"over without one":  {nil, nil, true, "PodSandboxNotReady", "no pod sandbox exists"},
	} {
		v := &view{box: row.box}
		v.Pod = &corev1.Pod{Status: corev1.PodStatus{Conditions: row.was}}
		c := v.sandboxCondition(row.over)
		if (c.Status == corev1.ConditionTrue) != (row.reason == "") || c.Reason != row.reason || c.Message != row.message {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
