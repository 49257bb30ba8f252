// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// ExecAdvice says how to look into a container in which a command could not be run: since its image has no such
// command, or since it does not run. It is nothing for other errors. container may be empty.
func ExecAdvice(failure, pod, container string) string {
	target := ""
	if container != "" {
		target = " --target " + container
	}
	switch {
	case strings.Contains(failure, "executable file not found") ||
		strings.Contains(failure, "no such file or directory"):
		return fmt.Sprintf("the image has no such command; wherry debug%s %s brings a shell and tools along", target,
			pod)
	case strings.Contains(failure, "CONTAINER_EXITED") || strings.Contains(failure, "is not running") ||
		strings.Contains(failure, "container not found"),
		strings.Contains(failure, "CONTAINER_CREATED"), strings.Contains(failure, "does not run"),
		strings.Contains(failure, "is waiting to start"):
		return fmt.Sprintf("the container does not run; wherry debug%s %s looks at what is left of it", target, pod)
	}
	return ""
}

// WantsContainer reports whether a server refused a command because it did not know which container is meant.
func WantsContainer(refusal string) bool {
	return strings.Contains(refusal, "a container name must be specified")
}

// Default is the container that kubectl takes when none is named: the one that the pod's annotation names, else its
// first; with the note that kubectl gives, which is empty where there is no choice.
func Default(pod *corev1.Pod) (name, note string) {
	var all []string
	annotated := pod.Annotations["kubectl.kubernetes.io/default-container"]
	var inits, debug []string
	for ref := range podspec.Containers(&pod.Spec) {
		switch c := ref.Container.Name; ref.Kind {
		case podspec.Main:
			if all = append(all, c); c == annotated {
				name = c
			}
		case podspec.Init, podspec.Sidecar:
			inits = append(inits, c+" (init)")
		case podspec.Ephemeral:
			debug = append(debug, c+" (ephem)")
		}
	}
	all = slices.Concat(all, inits, debug)
	if name == "" {
		name = pod.Spec.Containers[0].Name
		if len(all) > 1 {
			note = fmt.Sprintf("Defaulted container %q out of: %s", name, strings.Join(all, ", "))
		}
	}
	return name, note
}
