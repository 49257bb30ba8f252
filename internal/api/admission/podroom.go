// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/podspec"
)

// podRoom refuses resizes that can never come true: the pod's node does not have as much at all (PL-14). Whether there
// is room now, beside other pods, is for the node to say.
type podRoom struct{ stores registry.Stores }

var _ admission.ValidationInterface = podRoom{}

// Handles implements admission.Interface.
func (podRoom) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.ValidationInterface.
func (p podRoom) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := resizedPod(a)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	if old, ok := a.GetOldObject().(*corev1.Pod); ok && old.Generation == pod.Generation {
		return nil
	}
	node, err := registry.Get[corev1.Node](ctx, p.stores["nodes"], "", pod.Spec.NodeName)
	switch {
	case apierrors.IsNotFound(err):
		return admission.NewForbidden(a, fmt.Errorf("node %q not found", pod.Spec.NodeName))
	case err != nil:
		return admission.NewForbidden(a, fmt.Errorf("failed to get node %q: %w", pod.Spec.NodeName, err))
	}
	if os, ok := node.Labels[corev1.LabelOSStable]; ok && os != string(corev1.Linux) {
		return because(a, "UnsupportedPlatform", fmt.Errorf(
			"pod resize is only supported on linux nodes, node %q is %q", node.Name, os))
	}
	if lacks := lacking(pod, node.Status.Allocatable); len(lacks) > 0 {
		return because(a, "NodeCapacity", fmt.Errorf("node didn't have enough allocatable resources: %s",
			strings.Join(lacks, "; ")))
	}
	return nil
}

// lacking names what a pod asks for beyond what its node can give.
func lacking(pod *corev1.Pod, room corev1.ResourceList) (all []string) {
	asked := podspec.EffectiveRequests(&corev1.Pod{Spec: pod.Spec})
	if cpu := asked.Cpu(); cpu.Cmp(*room.Cpu()) > 0 {
		all = append(all, fmt.Sprintf("cpu, requested: %d, allocatable: %d", cpu.MilliValue(), room.Cpu().MilliValue()))
	}
	if memory := asked.Memory(); memory.Cmp(*room.Memory()) > 0 {
		all = append(all, fmt.Sprintf("memory, requested: %d, allocatable: %d", memory.Value(), room.Memory().Value()))
	}
	return all
}

// because refuses a request with a cause that programs can tell.
func because(a admission.Attributes, cause metav1.CauseType, err error) error {
	refused := admission.NewForbidden(a, err)
	if status := (*apierrors.StatusError)(nil); errors.As(refused, &status) && status.ErrStatus.Details != nil {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause})
	}
	return refused
}
