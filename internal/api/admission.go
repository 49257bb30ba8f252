// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
)

// defaultNotReadySeconds is how long a pod stays bound to a node that is not ready or unreachable, unless it says otherwise.
const defaultNotReadySeconds = 300

// admit is the server's admission: what depends on other objects than the one that is written.
type admit struct {
	namespace func(ctx context.Context, name string) (*corev1.Namespace, error)
	account   func(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
}

var (
	_ admission.MutationInterface   = (*admit)(nil)
	_ admission.ValidationInterface = (*admit)(nil)
)

// Handles implements admission.Interface.
func (*admit) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Delete
}

// Admit implements admission.MutationInterface.
func (p *admit) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Create {
		if err := p.checkNamespace(ctx, a); err != nil {
			return err
		}
	}
	pod, ok := newPod(a)
	if !ok {
		return nil
	}
	if err := setPriority(pod); err != nil {
		return admission.NewForbidden(a, err)
	}
	addTolerations(pod)
	return p.addAccount(ctx, a, pod)
}

// Validate implements admission.ValidationInterface. What Admit checked is checked again here, since objects made by a
// server-side apply only pass this way.
func (p *admit) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	switch {
	case a.GetOperation() == admission.Create:
		return p.checkNamespace(ctx, a)
	case a.GetResource().GroupResource() == corev1.Resource("namespaces") && a.GetSubresource() == "":
		switch a.GetName() {
		case metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic:
			return apierrors.NewForbidden(corev1.Resource("namespaces"), a.GetName(), fmt.Errorf("this namespace may not be deleted"))
		}
	}
	return nil
}

// checkNamespace refuses new objects in a namespace that does not exist or is going away.
func (p *admit) checkNamespace(ctx context.Context, a admission.Attributes) error {
	if a.GetNamespace() == "" || a.GetSubresource() != "" || a.GetKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind() {
		return nil
	}
	ns, err := p.namespace(ctx, a.GetNamespace())
	if err != nil {
		return err
	}
	if ns.DeletionTimestamp == nil && ns.Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	refused := admission.NewForbidden(a, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", ns.Name))
	if status, ok := refused.(*apierrors.StatusError); ok {
		if status.ErrStatus.Details == nil {
			status.ErrStatus.Details = &metav1.StatusDetails{}
		}
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    corev1.NamespaceTerminatingCause,
			Message: fmt.Sprintf("namespace %s is being terminated", ns.Name),
			Field:   "metadata.namespace",
		})
	}
	return refused
}

func newPod(a admission.Attributes) (*corev1.Pod, bool) {
	if a.GetOperation() != admission.Create || a.GetSubresource() != "" || a.GetResource().GroupResource() != corev1.Resource("pods") {
		return nil, false
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	return pod, ok
}

// setPriority knows the two classes every cluster has; there are no PriorityClass objects.
func setPriority(pod *corev1.Pod) error {
	var priority int32
	switch pod.Spec.PriorityClassName {
	case "":
	case "system-cluster-critical":
		priority = 2000000000
	case "system-node-critical":
		priority = 2000001000
	default:
		return fmt.Errorf("no PriorityClass with name %s was found", pod.Spec.PriorityClassName)
	}
	if pod.Spec.Priority != nil && *pod.Spec.Priority != priority {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *pod.Spec.Priority, priority)
	}
	pod.Spec.Priority = &priority
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority)
	}
	return nil
}

// addTolerations lets a pod sit out five minutes of a node's absence unless the pod says something about it.
func addTolerations(pod *corev1.Pod) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !tolerates(pod, key) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: ptr.To[int64](defaultNotReadySeconds),
			})
		}
	}
}

func tolerates(pod *corev1.Pod, key string) bool {
	for _, t := range pod.Spec.Tolerations {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}
