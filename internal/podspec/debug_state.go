// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// DebugPhase is how far the wanted run of a debug container is.
type DebugPhase int

const (
	// DebugAbsent: the pod has no ephemeral container of that name.
	DebugAbsent DebugPhase = iota
	// DebugPending: it has not started yet, and nothing says that it cannot.
	DebugPending
	// DebugFailing: it has not started, since something is wrong; see the Reason.
	DebugFailing
	// DebugRunning: its process runs.
	DebugRunning
	// DebugEnded: its process has ended, or never will start.
	DebugEnded
)

// DebugState is what a pod's status says about the wanted run of a debug container.
type DebugState struct {
	Phase DebugPhase
	// Run is the wanted run: how often the name was used before.
	Run int
	// Begun is false while the node has reported nothing about this run.
	Begun bool
	// Reason and Message are those of the container's state.
	Reason, Message string
	// Terminated is set when the phase is DebugEnded.
	Terminated *corev1.ContainerStateTerminated
}

// DebugStateOf reads the state of the ephemeral container name. The status counts an ephemeral container's runs as
// restarts; one of an earlier run says nothing about the wanted one (DC-06).
func DebugStateOf(pod *corev1.Pod, name string) DebugState {
	if FindEphemeral(pod, name) == nil {
		return DebugState{}
	}
	state := DebugState{Phase: DebugPending, Run: DebugRunsOf(pod)[name].Run}
	list := pod.Status.EphemeralContainerStatuses
	i := slices.IndexFunc(list, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if i < 0 || int(list[i].RestartCount) < state.Run {
		return state
	}
	switch s := list[i].State; {
	case s.Running != nil:
		state.Phase, state.Begun = DebugRunning, true
	case s.Terminated != nil:
		state.Phase, state.Begun, state.Terminated = DebugEnded, true, s.Terminated
		state.Reason, state.Message = s.Terminated.Reason, s.Terminated.Message
	case s.Waiting != nil:
		state.Begun, state.Reason, state.Message = true, s.Waiting.Reason, s.Waiting.Message
		if !onItsWay(s.Waiting.Reason) {
			state.Phase = DebugFailing
		}
	}
	return state
}

// DebugEnds is when the wanted run of a debug container is to be stopped, as far as the pod's status tells when it
// began; zero for never. Of one that has not started it is the end that it would have if it started at the last moment.
func DebugEnds(pod *corev1.Pod, name string) time.Time {
	want, began := DebugRunsOf(pod)[name], time.Time{}
	switch s := DebugStateOf(pod, name); s.Phase {
	case DebugRunning:
		i := slices.IndexFunc(pod.Status.EphemeralContainerStatuses,
			func(s corev1.ContainerStatus) bool { return s.Name == name })
		began = pod.Status.EphemeralContainerStatuses[i].State.Running.StartedAt.Time
	case DebugEnded:
		began = s.Terminated.StartedAt.Time
	default:
		if want.StopAt == nil {
			return time.Time{}
		}
		return want.StopAt.Time
	}
	return want.Ends(began)
}

// onItsWay are the reasons to wait that nothing is wrong about.
func onItsWay(reason string) bool {
	return reason == "" || reason == "ContainerCreating" || reason == "PodInitializing"
}

// DebugRefusal is why a debug container is not added to a pod.
type DebugRefusal struct {
	// Taken: the name is another container's (DC-05). Else the pod cannot have one now.
	Taken bool
	// Message says what is wrong and what to do.
	Message string
}

// Error implements error.
func (r *DebugRefusal) Error() string { return r.Message }

// AddDebugContainer changes pod so that the container is added, or, where one of its name has ended, replaced and the
// name's runs counted up (DC-06). It returns which run that makes. The error is a *DebugRefusal when the pod is in no
// state for it; pod is unchanged then. What the container says is not judged here.
func AddDebugContainer(pod *corev1.Pod, c corev1.EphemeralContainer, want DebugRun) (int, error) {
	if err := debuggable(pod); err != nil {
		return 0, err
	}
	if err := targetRuns(pod, c); err != nil {
		return 0, err
	}
	if ref, ok := FindContainer(&pod.Spec, c.Name); ok && ref.Kind != Ephemeral {
		return 0, taken("container name %q is taken by %s of pod %s: choose another", c.Name, ref.Path(), pod.Name)
	}
	state := DebugStateOf(pod, c.Name)
	switch state.Phase {
	case DebugRunning:
		return 0, taken("debug container %q of pod %s is running: attach to it, stop it, or choose another name",
			c.Name, pod.Name)
	case DebugPending, DebugFailing:
		return 0, taken("debug container %q of pod %s has not started yet%s: stop it, or choose another name", c.Name,
			pod.Name, because(state))
	}
	runs := DebugRunsOf(pod)
	if runs == nil {
		runs = DebugRuns{}
	}
	if state.Phase == DebugAbsent {
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, c)
	} else {
		want.Run = state.Run + 1
		*FindEphemeral(pod, c.Name) = c
	}
	if want != (DebugRun{}) {
		runs[c.Name] = want
	}
	return want.Run, SetDebugRuns(pod, runs)
}

func because(s DebugState) string {
	if s.Reason == "" {
		return ""
	}
	return " (" + s.Reason + ")"
}

func taken(format string, args ...any) error {
	return &DebugRefusal{Taken: true, Message: fmt.Sprintf(format, args...)}
}

func refused(format string, args ...any) error {
	return &DebugRefusal{Message: fmt.Sprintf(format, args...)}
}

// debuggable says why a pod takes no debug containers, if so.
func debuggable(pod *corev1.Pod) error {
	_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
	const instead = "run a command from an image in it instead (wherry exec -m IMAGE)"
	switch {
	case static:
		return refused("pod %s is a static pod, which takes no debug containers: %s", pod.Name, instead)
	case pod.DeletionTimestamp != nil:
		return refused("pod %s is being deleted, so it takes no debug containers", pod.Name)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return refused("pod %s has ended (%s), so no debug container can start in it: %s", pod.Name, pod.Status.Phase,
			instead)
	case pod.Spec.NodeName == "":
		return refused("pod %s does not have a host assigned: a debug container needs a pod that is on a node",
			pod.Name)
	}
	return nil
}

// targetRuns: there is nothing to join in a target that does not run (PID-07). Whether it is one is validation's to
// judge.
func targetRuns(pod *corev1.Pod, c corev1.EphemeralContainer) error {
	if c.TargetContainerName == "" || NamespaceModes(pod).PID != NamespaceContainer {
		return nil
	}
	ref, ok := FindContainer(&pod.Spec, c.TargetContainerName)
	if !ok || ref.Kind == Ephemeral {
		return nil
	}
	s := FindStatus(&pod.Status, c.TargetContainerName)
	if s != nil && s.State.Running != nil {
		return nil
	}
	return refused("target container %q of pod %s is not running%s: leave the target out, or run a command from an image to see its files (wherry exec -m IMAGE -c %s)",
		c.TargetContainerName, pod.Name, stateWord(s), c.TargetContainerName)
}

func stateWord(s *corev1.ContainerStatus) string {
	switch {
	case s == nil:
		return ""
	case s.State.Waiting != nil && s.State.Waiting.Reason != "":
		return " (" + s.State.Waiting.Reason + ")"
	case s.State.Terminated != nil:
		return fmt.Sprintf(" (exit code %d, %s)", s.State.Terminated.ExitCode, s.State.Terminated.Reason)
	}
	return ""
}
