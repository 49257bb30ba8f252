// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Way is how to get into a pod.
type Way int

const (
	// Add makes a debug container.
	Add Way = iota
	// Attach joins the one that runs.
	Attach
	// Visit runs a command beside the pod's containers, dead or alive, with their files below /c.
	Visit
	// Await waits for one that is about to start, to attach to it then.
	Await
)

// Request is what the user asked for.
type Request struct {
	Name   string // of the debug container, "" for a default one
	Image  string // "" for the toolbox
	Target string
	// Command is set when the user gave one: that is not for a container that runs already.
	Command bool
	// Made is set when anything else was asked of how a new one is to be made.
	Made bool
}

// makes reports whether the user asked to make one. A name alone means one that is there.
func (w Request) makes() bool {
	return w.Name == "" || w.Image != "" || w.Target != "" || w.Command || w.Made
}

// Choice is the way, and for all but Visit the container's name.
type Choice struct {
	Way  Way
	Name string
}

// Choose decides how to get into pod (DC-01, DC-06, DC-07, IX-09).
func Choose(pod *corev1.Pod, w Request) (Choice, error) {
	if w.Name != "" && podspec.DebugStateOf(pod, w.Name).Phase == podspec.DebugRunning {
		if w.Image != "" || w.Command || w.Target != "" {
			return Choice{},
				fmt.Errorf("debug container %q of pod %s is running: leave image, target and command out to attach to it, or choose another name", w.Name, pod.Name)
		}
		return Choice{Attach, w.Name}, nil
	}
	if !w.makes() && Starting(pod, w.Name) {
		return Choice{Await, w.Name}, nil
	}
	if !w.makes() {
		return Choice{}, notThere(pod, w.Name)
	}
	if podspec.IsDead(pod, w.Target) {
		return Choice{Way: Visit}, nil
	}
	if w.Name != "" {
		return Choice{Add, w.Name}, nil
	}
	return Choice{Add, freeName(pod)}, nil
}

// Starting reports whether a debug container has not started yet, and nothing is known that keeps it from it (DC-07).
func Starting(pod *corev1.Pod, name string) bool {
	return podspec.DebugStateOf(pod, name).Phase == podspec.DebugPending && over(pod) == ""
}

// over says why nothing starts in a pod any more; it is empty if something may.
func over(pod *corev1.Pod) string {
	switch {
	case pod.DeletionTimestamp != nil:
		return "the pod is being deleted"
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return "the pod has ended"
	}
	return ""
}

// freeName is the first of debug, debug-2, … that nobody has, or whose container has ended (DC-01, DC-06).
func freeName(pod *corev1.Pod) string {
	for n := 1; ; n++ {
		name := debugask.FirstName
		if n > 1 {
			name = fmt.Sprintf("%s-%d", debugask.FirstName, n)
		}
		ref, taken := podspec.FindContainer(&pod.Spec, name)
		if !taken || ref.Kind == podspec.Ephemeral && podspec.DebugStateOf(pod, name).Phase == podspec.DebugEnded {
			return name
		}
	}
}

// notThere says why there is no debug container of a name to come back to, and how to make one.
func notThere(pod *corev1.Pod, name string) error {
	make := fmt.Sprintf("to make one of that name: wherry debug -c %s -m %s %s", name, debugask.ToolboxImage, pod.Name)
	state := podspec.DebugStateOf(pod, name)
	switch state.Phase {
	case podspec.DebugEnded:
		return fmt.Errorf("debug container %s of pod %s has ended (exit code %d): what it printed is in kubectl logs %s -c %s; %s",
			name, pod.Name, state.Terminated.ExitCode, pod.Name, name, make)
	case podspec.DebugPending, podspec.DebugFailing:
		if why := over(pod); why != "" {
			return fmt.Errorf("debug container %s of pod %s has not started and never will: %s", name, pod.Name, why)
		}
		return fmt.Errorf("debug container %s of pod %s cannot start: %s; to give it up: wherry debug stop %s %s",
			name, pod.Name, because(state), pod.Name, name)
	}
	if ref, ok := podspec.FindContainer(&pod.Spec, name); ok {
		return fmt.Errorf("%s is a container of pod %s and not a debug container: to see its processes, wherry debug --target %s %s", ref.Container.Name, pod.Name, name, pod.Name)
	}
	var run []string
	for i := range pod.Spec.EphemeralContainers {
		if e := pod.Spec.EphemeralContainers[i].Name; podspec.DebugStateOf(pod, e).Phase == podspec.DebugRunning {
			run = append(run, e)
		}
	}
	there := "none runs in it"
	if len(run) > 0 {
		there = "running in it: " + strings.Join(run, ", ")
	}
	return fmt.Errorf("pod %s has no debug container %s (%s); %s", pod.Name, name, there, make)
}

// because is what keeps a debug container from starting.
func because(state podspec.DebugState) string {
	if state.Message == "" {
		return state.Reason
	}
	return state.Reason + ": " + strings.TrimSuffix(state.Message, ".")
}
