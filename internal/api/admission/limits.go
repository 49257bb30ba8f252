// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/wherryproject/wherry/internal/api/limitrange"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// limitRanger holds new pods, and those that are resized, to the LimitRanges of their namespace (SC-16, PL-14).
type limitRanger struct{ ranges *registry.Ruled }

var (
	_ admission.MutationInterface   = limitRanger{}
	_ admission.ValidationInterface = limitRanger{}
)

// Handles implements admission.Interface.
func (limitRanger) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Admit implements admission.MutationInterface: defaults first.
func (p limitRanger) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ranges, err := p.of(ctx, a)
	if err != nil || len(ranges) == 0 {
		return err
	}
	limitrange.Apply(pod, ranges)
	return nil
}

// Validate implements admission.ValidationInterface: then the limits, all violations at once.
func (p limitRanger) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if claim, ok := a.GetObject().(*core.PersistentVolumeClaim); ok && a.GetSubresource() == "" {
		ranges, err := p.in(ctx, a.GetNamespace())
		refused := errors.NewAggregate(limitrange.CheckClaim(claim.Spec.Resources.Requests[core.ResourceStorage],
			ranges))
		if err == nil && refused != nil {
			return admission.NewForbidden(a, refused)
		}
		return err
	}
	pod, ranges, err := p.of(ctx, a)
	if err != nil || len(ranges) == 0 {
		return err
	}
	if refused := errors.NewAggregate(limitrange.Check(pod, ranges)); refused != nil {
		return admission.NewForbidden(a, refused)
	}
	return nil
}

// of is the new or resized pod and what rules it; most namespaces have no ranges and cost no read.
func (p limitRanger) of(ctx context.Context, a admission.Attributes) (*corev1.Pod, []corev1.LimitRange, error) {
	pod, ok := newPod(a)
	if !ok {
		pod, ok = resizedPod(a)
	}
	if !ok {
		return nil, nil, nil
	}
	ranges, err := p.in(ctx, a.GetNamespace())
	return pod, ranges, err
}

func (p limitRanger) in(ctx context.Context, namespace string) ([]corev1.LimitRange, error) {
	if has, err := p.ranges.Has(ctx, namespace); err != nil || !has {
		return nil, err
	}
	list, err := p.ranges.Of.List(p.ranges.Of.Within(ctx, namespace), &metainternal.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the limit ranges of namespace %s: %w", namespace, err)
	}
	return list.(*corev1.LimitRangeList).Items, nil
}
