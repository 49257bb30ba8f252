// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Outcome says whether the pod has ended and, if so, the exit code that stands for it: 0 when it succeeded, else that
// of the main container that failed first, else that of the init container that kept the mains from starting, else 1.
// why is a sentence for the failures that no exit code explains.
func Outcome(pod *corev1.Pod) (code int, why string, ended bool) {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return 0, "", true
	case corev1.PodFailed:
		code, why = failure(pod)
		return code, why, true
	}
	return 0, "", false
}

func failure(pod *corev1.Pod) (int, string) {
	if name, t := firstFailed(pod.Status.ContainerStatuses); t != nil {
		return shellCode(t.ExitCode), fmt.Sprintf("container %s %s", name, ended(t))
	}
	if name, t := firstFailed(pod.Status.InitContainerStatuses); t != nil {
		return shellCode(t.ExitCode), fmt.Sprintf("init container %s %s", name, ended(t))
	}
	if pod.Status.Reason != "" {
		return 1, reasoned(pod.Status.Reason, pod.Status.Message)
	}
	return 1, "the pod failed without saying why"
}

func firstFailed(list []corev1.ContainerStatus) (name string, first *corev1.ContainerStateTerminated) {
	for _, s := range list {
		t := s.State.Terminated
		if t == nil || t.ExitCode == 0 {
			continue
		}
		if first == nil || t.FinishedAt.Before(&first.FinishedAt) {
			name, first = s.Name, t
		}
	}
	return name, first
}

// shellCode keeps an exit code within what a process can return, and never turns a failure into 0.
func shellCode(code int32) int {
	if code > 0 && code < 256 {
		return int(code)
	}
	return 1
}

// Trouble is what keeps a pod from running.
type Trouble struct {
	Container string // empty: the pod
	Reason    string
	Message   string
	Hopeless  bool // waiting does not help: somebody must change the pod or the node
	ExitCode  int  // of the container that crashes; 0: none has
}

func (t Trouble) String() string {
	text := reasoned(t.Reason, t.Message)
	if t.Container != "" {
		text = "container " + t.Container + ": " + text
	}
	return text
}

// waiting reasons that are trouble; true = hopeless.
var troubles = map[string]bool{
	"ErrImageNeverPull":          true,
	"InvalidImageName":           true,
	"ErrImagePull":               false,
	"ImagePullBackOff":           false,
	"ImageInspectError":          false,
	"RegistryUnavailable":        false,
	"CreateContainerConfigError": false,
	"CreateContainerError":       false,
	"RunContainerError":          false,
	"CrashLoopBackOff":           false,
}

// passing is a config map that each namespace is given by itself, a moment after it was made.
const passing = `"kube-root-ca.crt"`

// Stuck returns the pod's first trouble: a container's in spec order, else what keeps its sandbox from being made, else
// that no node takes it.
func Stuck(pod *corev1.Pod) (Trouble, bool) {
	for _, s := range ordered(pod) {
		w := s.State.Waiting
		if w == nil {
			continue
		}
		if hopeless, ok := troubles[w.Reason]; ok {
			t := Trouble{Container: s.Name, Reason: w.Reason, Message: w.Message, Hopeless: hopeless}
			if last := s.LastTerminationState.Terminated; last != nil && w.Reason == "CrashLoopBackOff" &&
				last.ExitCode != 0 {
				t.ExitCode = shellCode(last.ExitCode)
			}
			return t, true
		}
	}
	if cause := obstacle(pod); cause != "" && !strings.Contains(cause, passing) {
		return Trouble{Reason: "cannot start", Message: cause}, true
	}
	if c := podspec.Condition(&pod.Status, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return Trouble{Reason: c.Reason, Message: c.Message}, true
	}
	return Trouble{}, false
}

// LastFailure is the exit code of the container that failed last, and when; 0 if none has. It is also known of a pod
// that was taken away before it ended.
func LastFailure(pod *corev1.Pod) (code int, at time.Time) {
	var last *corev1.ContainerStateTerminated
	for _, s := range podspec.OwnStatuses(&pod.Status) {
		for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			if t != nil && t.ExitCode != 0 && (last == nil || last.FinishedAt.Before(&t.FinishedAt)) {
				last = t
			}
		}
	}
	if last == nil {
		return 0, time.Time{}
	}
	return shellCode(last.ExitCode), last.FinishedAt.Time
}
