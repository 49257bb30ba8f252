// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// chooseContainer returns the container that a request means: the one it names, which must be of the pod, or else the
// only one there is.
func chooseContainer(pod *corev1.Pod, name string) (string, error) {
	if name != "" {
		if !slices.Contains(containerNames(pod), name) {
			return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
		}
		return name, nil
	}
	mains, inits := mainNames(pod), initNames(pod)
	if len(mains) == 1 {
		return mains[0], nil
	}
	message := "a container name must be specified for pod " + pod.Name
	if len(mains) > 1 {
		message += fmt.Sprintf(", choose one of: [%s]", strings.Join(mains, " "))
		if len(inits) > 0 {
			message += fmt.Sprintf(" or one of the init containers: [%s]", strings.Join(inits, " "))
		}
	}
	return "", apierrors.NewBadRequest(message)
}

func containerNames(pod *corev1.Pod) []string {
	names := append(mainNames(pod), initNames(pod)...)
	for i := range pod.Spec.EphemeralContainers {
		names = append(names, pod.Spec.EphemeralContainers[i].Name)
	}
	return names
}

func mainNames(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	return names
}

func initNames(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.InitContainers {
		names = append(names, pod.Spec.InitContainers[i].Name)
	}
	return names
}

// scheduled refuses pods that are on no node yet.
func scheduled(pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
	}
	return nil
}
