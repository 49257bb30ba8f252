// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/validation"
	"github.com/wherryproject/wherry/internal/podspec"
)

// priorities gives pods the priority of their class, keeps the classes that every cluster has, and sees to it that at
// most one class is the default for all pods.
type priorities struct {
	classes    *registry.REST
	defaults   *registry.Ruled // whether there may be a default class
	authorizer func() authorizer.UnconditionalAuthorizer
}

var (
	_ admission.MutationInterface   = (*priorities)(nil)
	_ admission.ValidationInterface = (*priorities)(nil)
)

func newPriorities(st registry.Stores, authorizer func() authorizer.UnconditionalAuthorizer) *priorities {
	r := st["priorityclasses"]
	return &priorities{classes: r, authorizer: authorizer, defaults: registry.NewRuledBy(r,
		func(obj runtime.Object) bool {
			class, ok := obj.(*schedulingv1.PriorityClass)
			return ok && class.GlobalDefault
		})}
}

// Handles implements admission.Interface.
func (*priorities) Handles(op admission.Operation) bool { return op != admission.Connect }

// Admit implements admission.MutationInterface. A client that leaves the priority out of an update means the one that
// is there.
func (p *priorities) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if pod, old := changedPod(a); old != nil {
		if pod.Spec.Priority == nil {
			pod.Spec.Priority = old.Spec.Priority
		}
		if pod.Spec.PreemptionPolicy == nil {
			pod.Spec.PreemptionPolicy = old.Spec.PreemptionPolicy
		}
		return nil
	}
	pod, ok := newPod(a)
	if !ok {
		return nil
	}
	class, err := p.of(ctx, pod.Spec.PriorityClassName)
	switch {
	case apierrors.IsNotFound(err):
		return admission.NewForbidden(a, fmt.Errorf("no PriorityClass with name %s was found",
			pod.Spec.PriorityClassName))
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("read the priority classes: %w", err))
	}
	if err := podspec.SetPriority(pod, class); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// of is the class of that name, or the default one if that is ""; nil if there is none.
func (p *priorities) of(ctx context.Context, name string) (*schedulingv1.PriorityClass, error) {
	if name != "" {
		return registry.Get[schedulingv1.PriorityClass](ctx, p.classes, "", name)
	}
	all, err := p.defaultClasses(ctx)
	var least *schedulingv1.PriorityClass
	for i := range all { // there is one, unless two were made at the same time
		if least == nil || all[i].Value < least.Value {
			least = &all[i]
		}
	}
	return least, err
}

func (p *priorities) defaultClasses(ctx context.Context) (all []schedulingv1.PriorityClass, _ error) {
	if has, err := p.defaults.Has(ctx, ""); err != nil || !has {
		return nil, err
	}
	list, err := p.classes.List(p.classes.Within(ctx, ""), &metainternal.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, class := range list.(*schedulingv1.PriorityClassList).Items {
		if class.GlobalDefault {
			all = append(all, class)
		}
	}
	return all, nil
}

// Validate implements admission.ValidationInterface.
func (p *priorities) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if pod, ok := newPod(a); ok {
		return mayBeCritical(ctx, a, pod, p.authorizer())
	}
	if a.GetResource().GroupResource() != p.classes.Kind.Resource() || a.GetSubresource() != "" {
		return nil
	}
	if a.GetOperation() == admission.Delete {
		name := a.GetName()
		if old := a.GetOldObject(); name == "" && old != nil { // one of a collection
			name = objectName(old)
		}
		if strings.HasPrefix(name, validation.SystemPrefix) {
			return apierrors.NewForbidden(p.classes.Kind.Resource(), name,
				errors.New("this is a system priority class and cannot be deleted"))
		}
		return nil
	}
	class, ok := a.GetObject().(*schedulingv1.PriorityClass)
	if !ok || !class.GlobalDefault {
		return nil
	}
	all, err := p.defaultClasses(ctx)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("read the priority classes: %w", err))
	}
	for _, other := range all {
		if other.Name != class.Name {
			return admission.NewForbidden(a,
				fmt.Errorf("PriorityClass %s is already marked as default. Only one default can exist", other.Name))
		}
	}
	return nil
}

// changedPod is the pod of an ordinary update, and what it was.
func changedPod(a admission.Attributes) (pod, old *corev1.Pod) {
	if a.GetOperation() != admission.Update || a.GetSubresource() != "" ||
		a.GetResource().GroupResource() != corev1.Resource("pods") {
		return nil, nil
	}
	pod, _ = a.GetObject().(*corev1.Pod)
	old, _ = a.GetOldObject().(*corev1.Pod)
	if pod == nil {
		return nil, nil
	}
	return pod, old
}
