// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestTerminationMessage: a container's last words are its file, else by policy the end of its log when it failed (PL-11).
func TestTerminationMessage(t *testing.T) {
	t.Parallel()
	s := shared(t)
	file := func(c corev1.Container, path string, policy corev1.TerminationMessagePolicy) corev1.Container {
		c.TerminationMessagePath, c.TerminationMessagePolicy = path, policy
		return c
	}
	const fallback = corev1.TerminationMessageFallbackToLogsOnError
	for _, c := range []struct {
		name      string
		container corev1.Container
		want      string
	}{
		{"file", Tool("write", "/dev/termination-log", "farewell", "3"), "farewell"},
		{"own-path", file(Tool("write", "/tmp/last", "adieu", "0"), "/tmp/last", corev1.TerminationMessageReadFile), "adieu"},
		{"nothing", Tool("exit", "3"), ""},
		{"fallback", file(Tool("exit", "3"), "", fallback), "exiting with 3\n"},
		{"fallback-not-on-success", file(Tool("exit", "0"), "", fallback), ""},
		{"fallback-file-first", file(Tool("write", "/dev/termination-log", "bye", "3"), "", fallback), "bye"},
		{"long", Tool("write", "/dev/termination-log", strings.Repeat("x", 5000), "1"), strings.Repeat("x", 4096)},
	} {
		t.Run("PL-11 "+c.name, func(t *testing.T) {
			t.Parallel()
			s := s.With(t)
			s.Create(Never(c.name, c.container))
			p := s.Wait(c.name, "end", func(p *corev1.Pod) bool { return Ended(p, "main") != nil })
			if got := Ended(p, "main").Message; got != c.want {
				t.Errorf("its message is %q (%d), want %q", got, len(got), c.want)
			}
		})
	}
}

// TestActiveDeadline: a pod that runs longer than its activeDeadlineSeconds fails with DeadlineExceeded, its containers are
// stopped, and restarting ends (PL-11).
func TestActiveDeadline(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("late", Tool("sleep")))
	s.WaitReady("late") // a deadline from the start on could pass before the container runs
	s.Kubectl("patch", "pod", "late", "--type=merge", "-p", `{"spec":{"activeDeadlineSeconds":1}}`)
	p := s.WaitPhase("late", corev1.PodFailed)
	if p.Status.Reason != "DeadlineExceeded" || !strings.Contains(p.Status.Message, "longer than") {
		t.Errorf("reason %q, message %q", p.Status.Reason, p.Status.Message)
	}
	s.Wait("late", "have its container ended", func(p *corev1.Pod) bool { return Ended(p, "main") != nil })
	s.WaitEvent("late", "DeadlineExceeded", "longer than")
}

// TestWrittenOff: a pod whose status somebody else makes a failed one stays failed, with his words, and what runs of it is stopped
// (PL-01, PL-10).
func TestWrittenOff(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("off", Tool("sleep")))
	s.WaitReady("off")
	s.Kubectl("patch", "pod", "off", "--subresource=status", "--type=merge", "-p",
		`{"status":{"phase":"Failed","reason":"NodeLost","message":"written off"}}`)
	p := s.Wait("off", "have its container ended", func(p *corev1.Pod) bool { return Ended(p, "main") != nil })
	if st := p.Status; st.Phase != corev1.PodFailed || st.Reason != "NodeLost" || st.Message != "written off" ||
		st.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("it is %s, %s: %s, %d restarts", st.Phase, st.Reason, st.Message, st.ContainerStatuses[0].RestartCount)
	}
}

// TestGrace: a container that ignores SIGTERM is killed when its grace is over, not before; one that obeys is gone at once
// (PL-10).
func TestGrace(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("stubborn", Tool("stubborn")))
	pod := s.WaitReady("stubborn")
	out := s.Start("logs", "-f", "stubborn")
	out.Out.Await("ignoring signals")
	begin := time.Now()
	s.Delete("stubborn")
	out.Out.Await("ignored terminated")
	s.WaitGone(pod)
	if took := time.Since(begin); took < 2*time.Second || took > 20*time.Second {
		t.Errorf("it took %s with a grace of 2s", took)
	}

	pod = NewPod("obedient", Tool("sleep"))
	*pod.Spec.TerminationGracePeriodSeconds = 60
	s.Create(pod)
	pod = s.WaitReady("obedient")
	begin = time.Now()
	s.Delete("obedient")
	s.WaitGone(pod)
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %s though the container obeys", took)
	}
}

// TestNothingLeft: of deleted pods of many kinds nothing is on the node once their objects are gone: containers, sandboxes,
// processes (children too), cgroups, mounts, volumes, logs, addresses (PL-10).
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	s := shared(t)
	withVolumes := NewPod("volumes", Tool("sleep"))
	withVolumes.Spec.Volumes = []corev1.Volume{
		{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		{Name: "ca", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}},
	}
	withVolumes.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "disk", MountPath: "/disk"}, {Name: "memory", MountPath: "/memory"}, {Name: "ca", MountPath: "/ca"},
	}
	ready := []*corev1.Pod{
		withVolumes,
		NewPod("family", Tool("children", "5")),
		WithInit(NewPod("inits", Tool("sleep"), Tool("http")), Named("i", Tool("exit", "0"))),
	}
	var pods []*corev1.Pod
	for _, p := range ready {
		s.Create(p)
	}
	s.Create(Never("ended", Tool("exit", "0")))
	s.Create(NewPod("crash", Tool("exit", "1")))
	for _, p := range ready {
		pods = append(pods, s.WaitReady(p.Name))
	}
	pods = append(pods, s.WaitPhase("ended", corev1.PodSucceeded), s.WaitRestarts("crash", "main", 1))
	for _, p := range pods {
		left, err := s.Traces(s.Context(), p)
		if err != nil || len(left) == 0 {
			t.Errorf("the test is blind: no trace of %s while it is there (%v)", p.Name, err)
		}
		s.Delete(p.Name)
	}
	for _, p := range pods {
		s.WaitGone(p)
	}
}
