// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DA-06: where the container that is meant is not there because an init container has not done its work, that is named.
func TestWhyNotMade(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	waits := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "first"},
		{Name: "side", RestartPolicy: &always}, {Name: "migrate"}}, Containers: []corev1.Container{{Name: "main"}}}}
	is := func(want string, container string, states ...corev1.ContainerStatus) {
		t.Helper()
		pod.Status.InitContainerStatuses = states
		got := whyNotMade(pod, container, refusal(404, metav1.StatusReasonNotFound, "web", "it is not there")).Error()
		if text, more := strings.CutPrefix(got, "it is not there"); !more || !strings.Contains(text, want) || (want == "") != (text == "") {
			t.Errorf("%s: %q, want %q", container, got, want)
		}
	}
	done := corev1.ContainerStatus{Name: "first", State: ended(0)}
	side := corev1.ContainerStatus{Name: "side", Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	is("init container migrate, which fails with exit code 3 (CrashLoopBackOff); that is debugged with --target migrate", "main", done, side,
		corev1.ContainerStatus{Name: "migrate", State: waits("CrashLoopBackOff"), LastTerminationState: ended(3)})
	is("init container first, which fails with exit code 1;", "migrate", corev1.ContainerStatus{Name: "first", State: ended(1)})
	is("init container first, which does not run (ImagePullBackOff);", "main", corev1.ContainerStatus{Name: "first", State: waits("ImagePullBackOff")})
	is("init container side, which runs;", "main", done, corev1.ContainerStatus{Name: "side",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	is("", "first", corev1.ContainerStatus{Name: "first", State: waits("PodInitializing")})
	is("", "main", done, side, corev1.ContainerStatus{Name: "migrate", State: ended(0)})
	is("", "", corev1.ContainerStatus{Name: "first", State: ended(1)})
	other := errors.New("something else")
	if got := whyNotMade(pod, "main", other); got != other {
		t.Errorf("%v", got)
	}
}
