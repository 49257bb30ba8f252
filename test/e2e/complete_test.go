// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// PL-21: a pod's status tells whom its containers run as, what is mounted in them, how they are stopped, and of which generation it speaks.
func TestStatusIsComplete(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	pod := k.up(`
metadata: {name: p}
spec:
  securityContext: {runAsUser: 1001, runAsGroup: 3000, supplementalGroups: [4000], fsGroup: 5000}
  volumes: [{name: v, emptyDir: {}}]
  containers:
  - {name: c, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /v, readOnly: true}], resources: {requests: {cpu: 10m}}}
`)
	if pod.Status.ObservedGeneration != pod.Generation {
		t.Errorf("generation %d, observed %d", pod.Generation, pod.Status.ObservedGeneration)
	}
	for _, c := range pod.Status.Conditions {
		if c.ObservedGeneration != pod.Generation {
			t.Errorf("condition %s speaks of generation %d, not of %d", c.Type, c.ObservedGeneration, pod.Generation)
		}
	}
	s := pod.Status.ContainerStatuses[0]
	want := corev1.LinuxContainerUser{UID: 1001, GID: 3000, SupplementalGroups: []int64{3000, 4000, 5000}}
	if s.User == nil || s.User.Linux == nil || !reflect.DeepEqual(*s.User.Linux, want) {
		t.Errorf("user %+v, want %+v", s.User, want)
	}
	disabled := corev1.RecursiveReadOnlyDisabled
	mount := corev1.VolumeMountStatus{Name: "v", MountPath: "/v", ReadOnly: true, RecursiveReadOnly: &disabled}
	if len(s.VolumeMounts) == 0 || !reflect.DeepEqual(s.VolumeMounts[0], mount) {
		t.Errorf("mounts %+v", s.VolumeMounts)
	}
	if s.StopSignal == nil || *s.StopSignal != corev1.SIGTERM || s.Resources == nil || s.AllocatedResources.Cpu().MilliValue() != 10 {
		t.Errorf("stop signal %v, resources %+v, allocated %v", s.StopSignal, s.Resources, s.AllocatedResources)
	}
}

// TestAddedByKubectl: kubectl adds a toleration to a pod that runs, keeps pod templates, and asks after the control plane's parts.
func TestAddedByKubectl(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	before := k.up(`
metadata: {name: p}
spec: {containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.Kubectl("patch", "pod", "p", "-p", `{"spec":{"tolerations":[{"key":"a","operator":"Exists"}]}}`)
	after := k.WaitReady("p")
	if len(after.Spec.Tolerations) != len(before.Spec.Tolerations)+1 || after.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("tolerations %+v, container %s was %s", after.Spec.Tolerations, after.Status.ContainerStatuses[0].ContainerID, before.Status.ContainerStatuses[0].ContainerID)
	}
	if r := k.KubectlIn(`{apiVersion: v1, kind: PodTemplate, metadata: {name: t}, template: {spec: {containers: [{name: c, image: "app:1"}]}}}`, "apply", "-f", "-"); r.Code != 0 {
		t.Fatalf("%s%s", r.Out, r.Err)
	}
	for command, want := range map[string]string{
		"get podtemplates":              "app:1",
		"explain podtemplate.template":  "PodTemplateSpec",
		"get componentstatuses":         "etcd-0",
		"get componentstatus scheduler": "Healthy",
	} {
		if r := k.Kubectl(strings.Fields(command)...); !strings.Contains(r.Out, want) {
			t.Errorf("%s: %s", command, r.Out)
		}
	}
}
