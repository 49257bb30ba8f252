// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Error is an answer to the client before there are any streams.
type Error struct {
	Status  int // of HTTP
	Message string
}

func (e *Error) Error() string { return e.Message }

func refuse(status int, format string, args ...any) error {
	return &Error{status, fmt.Sprintf(format, args...)}
}

// place is where the command runs.
type place struct {
	Sandbox *plan.Sandbox // nil: in one that is made for it (IX-09)
	// Target is the id of the container whose processes the command is to see; "" for none.
	Target string
	Notes  []string
}

// placeOf decides where the command runs: in the pod's sandbox as long as that is up, else, to look at what is left of
// the pod, in a temporary one (IX-03, IX-09).
func placeOf(pod *corev1.Pod, seen plan.Seen, target string) (place, error) {
	var p place
	if target != "" {
		if _, ok := podspec.FindContainer(&pod.Spec, target); !ok {
			return p, refuse(http.StatusNotFound, "container not found (%q): pod %q has no such container", target,
				pod.Name)
		}
	}
	for i := range seen.Sandboxes {
		if s := &seen.Sandboxes[i]; p.Sandbox == nil || s.Attempt > p.Sandbox.Attempt {
			p.Sandbox = s
		}
	}
	switch {
	case p.Sandbox != nil && p.Sandbox.Ready && !leaving(pod, seen):
	case pod.DeletionTimestamp != nil:
		return p, refuse(http.StatusConflict, "pod %q is being deleted, and its sandbox is already gone", pod.Name)
	case len(seen.Containers) == 0 && pod.Status.Phase == corev1.PodFailed:
		return p,
			refuse(http.StatusConflict,
				"pod %q has failed (%s) and never ran a container on this node, so there is nothing to see: %s",
				pod.Name, cmp.Or(pod.Status.Reason, "no reason is known"), pod.Status.Message)
	case len(seen.Containers) == 0:
		return p,
			refuse(http.StatusConflict,
				"pod %q has not run any container on this node yet, so there is nothing to see; try kubectl describe pod", pod.Name)
	default:
		p.Sandbox = nil
		p.Notes = append(p.Notes, "the pod's sandbox is gone: the command runs in its own network")
	}
	if target == "" || podspec.NamespaceModes(pod).PID != podspec.NamespaceContainer {
		return p, nil // it sees the target's processes anyway, as everybody's
	}
	for i := range seen.Containers {
		c := &seen.Containers[i]
		if c.Name == target && c.Running() && p.Sandbox != nil && c.SandboxID == p.Sandbox.ID {
			p.Target = c.ID
			return p, nil
		}
	}
	p.Notes = append(p.Notes, fmt.Sprintf("container %s is not running: the command does not see its processes",
		target))
	return p, nil
}

// leaving reports whether a pod has ended, so that its sandbox is going to be stopped at any moment.
func leaving(pod *corev1.Pod, seen plan.Seen) bool {
	over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return over && pod.DeletionTimestamp == nil && !slices.ContainsFunc(seen.Containers,
		func(c plan.Container) bool { return c.Running() })
}

// standIn is the pod that a temporary sandbox is made of: like the pod, but nobody takes it for the pod, and its host
// ports stay free.
func standIn(pod *corev1.Pod, session string) *corev1.Pod {
	p := pod.DeepCopy()
	p.UID = types.UID(session)
	p.Annotations = maps.Clone(pod.Annotations)
	for ref := range podspec.Containers(&p.Spec) {
		ref.Container.Ports = nil
	}
	return p
}
