// SPDX-License-Identifier: Apache-2.0

package poddebug

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/debugask"
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
)

// Wish is what the user said.
type Wish struct {
	Name   string // of the debug container, "" for a default one
	Image  string // "" for the toolbox
	Target string
	// Command is set when the user gave one: that is not for a container that runs already.
	Command bool
}

// Choice is the way, and for Add and Attach the container's name.
type Choice struct {
	Way  Way
	Name string
}

// Choose decides how to get into pod (DC-01, DC-06, DC-07, IX-09).
func Choose(pod *corev1.Pod, w Wish) (Choice, error) {
	if w.Name != "" && podspec.DebugStateOf(pod, w.Name).Phase == podspec.DebugRunning {
		if w.Image != "" || w.Command || w.Target != "" {
			return Choice{}, fmt.Errorf("debug container %q of pod %s is running: leave image, target and command out to attach to it, or choose another name", w.Name, pod.Name)
		}
		return Choice{Attach, w.Name}, nil
	}
	if podspec.IsDead(pod, w.Target) {
		return Choice{Way: Visit}, nil
	}
	if w.Name != "" {
		return Choice{Add, w.Name}, nil
	}
	return Choice{Add, freeName(pod)}, nil
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
