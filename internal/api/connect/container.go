// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherryproject/wherry/internal/podspec"
)

// chooseContainer returns the container that a request means: the one it names, which must be of the pod, or else the
// only one there is.
func chooseContainer(pod *corev1.Pod, name string) (string, error) {
	if name != "" {
		if !slices.Contains(ContainerNames(pod), name) {
			return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
		}
		return name, nil
	}
	mains, inits := namesOf(pod, podspec.Main), namesOf(pod, podspec.Init, podspec.Sidecar)
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

// ContainerNames are the names of all containers of a pod.
func ContainerNames(pod *corev1.Pod) []string {
	return append(append(namesOf(pod, podspec.Main), namesOf(pod, podspec.Init, podspec.Sidecar)...),
		namesOf(pod, podspec.Ephemeral)...)
}

func namesOf(pod *corev1.Pod, kinds ...podspec.Kind) (names []string) {
	for ref := range podspec.Containers(&pod.Spec) {
		if slices.Contains(kinds, ref.Kind) {
			names = append(names, ref.Container.Name)
		}
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
