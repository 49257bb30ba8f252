// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/wherryproject/wherry/internal/api/podstore"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// bindingREST serves pods/binding: it gives a pending pod to a node, once.
type bindingREST struct{ pods *registry.REST }

var (
	_ rest.NamedCreater                   = bindingREST{}
	_ rest.SubresourceObjectMetaPreserver = bindingREST{}
)

// New implements rest.Storage.
func (bindingREST) New() runtime.Object { return &corev1.Binding{} }

// Destroy implements rest.Storage.
func (bindingREST) Destroy() {}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate keeps uid and resourceVersion of the request: they are
// preconditions.
func (bindingREST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create implements rest.NamedCreater.
func (r bindingREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	binding, ok := obj.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding object: %T", obj))
	}
	if binding.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if errs := validateBinding(binding); len(errs) > 0 {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Binding").GroupKind(), name, errs)
	}
	if validate != nil {
		if err := validate(ctx, binding.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	p := &storage.Preconditions{}
	if binding.UID != "" {
		p.UID = &binding.UID
	}
	if binding.ResourceVersion != "" {
		p.ResourceVersion = &binding.ResourceVersion
	}
	dry := dryrun.IsDryRun(options.DryRun)
	err := r.pods.Growing(ctx, request.NamespaceValue(ctx), func(charge registry.Charge) error {
		return podstore.Update(ctx, r.pods.Store, name, p, dry, func(pod *corev1.Pod) error {
			old := pod.DeepCopy()
			if err := bind(pod, binding); err != nil || registry.FromInside(ctx) {
				return err
			}
			// the binding's labels and annotations go into the pod
			return charge(ctx, bindingAttributes(ctx, pod, old, dry))
		})
	})
	if err != nil {
		return nil, err
	}
	return podstore.Success(), nil
}

// bindingAttributes are those of the update that a binding is of its pod.
func bindingAttributes(ctx context.Context, pod, old *corev1.Pod, dry bool) admission.Attributes {
	user, _ := request.UserFrom(ctx)
	v1 := corev1.SchemeGroupVersion
	return admission.NewAttributesRecord(pod, old, v1.WithKind("Pod"), old.Namespace, old.Name, v1.WithResource("pods"),
		"binding", admission.Update, registry.UpdateOptions(), dry, user)
}

func validateBinding(b *corev1.Binding) (errs field.ErrorList) {
	if b.Target.Kind != "" && b.Target.Kind != "Node" {
		errs = append(errs, field.NotSupported(field.NewPath("target", "kind"), b.Target.Kind,
			[]string{"Node", "<empty>"}))
	}
	if b.Target.Name == "" {
		errs = append(errs, field.Required(field.NewPath("target", "name"), ""))
	}
	return append(errs, metav1validation.ValidateLabels(b.Labels, field.NewPath("metadata", "labels"))...)
}

func bind(pod *corev1.Pod, b *corev1.Binding) error {
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, pod.Name,
			fmt.Errorf(format, args...))
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return conflict("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return conflict("pod %v is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) != 0:
		return conflict("pod %v has non-empty .spec.schedulingGates", pod.Name)
	}
	pod.Spec.NodeName = b.Target.Name
	if pod.Annotations == nil && len(b.Annotations) > 0 {
		pod.Annotations = map[string]string{}
	}
	for key, value := range b.Annotations {
		if !slices.Contains(podstore.OwnAnnotations(), key) {
			pod.Annotations[key] = value
		}
	}
	if pod.Labels == nil && len(b.Labels) > 0 {
		pod.Labels = map[string]string{}
	}
	maps.Copy(pod.Labels, b.Labels)
	podstore.SetCondition(&pod.Status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
	})
	return nil
}
