// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/podspec"
)

// runtimeClasses gives pods what their runtime class says: its overhead, and where it can run (KEP-688, KEP-585).
type runtimeClasses struct{ classes *registry.REST }

var (
	_ admission.MutationInterface   = runtimeClasses{}
	_ admission.ValidationInterface = runtimeClasses{}
)

// Handles implements admission.Interface. A pod's runtime class never changes.
func (runtimeClasses) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit implements admission.MutationInterface.
func (p runtimeClasses) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return p.with(ctx, a, podspec.ApplyRuntimeClass)
}

// Validate implements admission.ValidationInterface: nobody may have changed the overhead since.
func (p runtimeClasses) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return p.with(ctx, a, podspec.CheckOverhead)
}

func (p runtimeClasses) with(ctx context.Context, a admission.Attributes,
	do func(*corev1.Pod, *nodev1.RuntimeClass) error) error {
	pod, ok := newPod(a)
	if !ok {
		return nil
	}
	var class *nodev1.RuntimeClass
	if name := pod.Spec.RuntimeClassName; name != nil {
		var err error
		class, err = registry.Get[nodev1.RuntimeClass](ctx, p.classes, "", *name)
		switch {
		case apierrors.IsNotFound(err):
			return admission.NewForbidden(a, fmt.Errorf("pod rejected: RuntimeClass %q not found", *name))
		case err != nil:
			return apierrors.NewInternalError(fmt.Errorf("read runtime class %s: %w", *name, err))
		}
	}
	if err := do(pod, class); err != nil {
		return admission.NewForbidden(a, fmt.Errorf("pod rejected: %w", err))
	}
	return nil
}
