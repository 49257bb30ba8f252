// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherryproject/wherry/internal/podspec"
)

// whyNotMade adds to an agent's word that a container is not there which init container the pod waits for. (Pure.)
func whyNotMade(pod *corev1.Pod, container string, err error) error {
	var refused *apierrors.StatusError
	if !errors.As(err, &refused) || refused.ErrStatus.Code != http.StatusNotFound || container == "" {
		return err
	}
	name, how := heldBy(pod, container)
	if name == "" {
		return err
	}
	more := *refused
	more.ErrStatus.Message += fmt.Sprintf("\nit waits for init container %s, which %s; that is debugged with --target %s", name,
		how, name)
	return &more
}

// heldBy is the init container that has to end well, or to start, before a container is made, and how far it is; empty
// if it waits for none. (Pure.)
func heldBy(pod *corev1.Pod, container string) (name, how string) {
	for ref := range podspec.Containers(&pod.Spec) {
		if ref.Kind != podspec.Init && ref.Kind != podspec.Sidecar {
			continue
		}
		if ref.Container.Name == container {
			return "", "" // what comes after it is not waited for
		}
		s := podspec.FindStatus(&pod.Status, ref.Container.Name)
		if s == nil || ref.Kind == podspec.Sidecar && s.Started != nil && *s.Started ||
			s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 {
			continue
		}
		return ref.Container.Name, stateOf(s)
	}
	return "", ""
}

// stateOf is how far a container is, in words. (Pure.)
func stateOf(s *corev1.ContainerStatus) string {
	end := s.State.Terminated
	if end == nil {
		end = s.LastTerminationState.Terminated
	}
	switch {
	case s.State.Running != nil:
		return "runs"
	case end != nil && s.State.Waiting != nil && s.State.Waiting.Reason != "":
		return fmt.Sprintf("fails with exit code %d (%s)", end.ExitCode, s.State.Waiting.Reason)
	case end != nil:
		return fmt.Sprintf("fails with exit code %d", end.ExitCode)
	case s.State.Waiting != nil && s.State.Waiting.Reason != "":
		return "does not run (" + s.State.Waiting.Reason + ")"
	}
	return "does not run"
}
