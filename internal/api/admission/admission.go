// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
)

// admit is the server's admission: what depends on other objects than the one that is written.
type admit struct {
	namespace func(ctx context.Context, name string) (*corev1.Namespace, error)
	account   func(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
	// notReady and unreachable are how long a pod sits out a node's absence unless it says something about it.
	notReady, unreachable time.Duration
}

var (
	_ admission.MutationInterface   = (*admit)(nil)
	_ admission.ValidationInterface = (*admit)(nil)
)

// Handles implements admission.Interface.
func (*admit) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update || op == admission.Delete
}

// Admit implements admission.MutationInterface.
func (p *admit) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Create {
		if err := p.checkNamespace(ctx, a); err != nil {
			return err
		}
	}
	// an update, too: a patch that gives tolerations puts its list in the place of the one with these
	if pod, ok := wholePod(a); ok {
		addTolerations(pod, p.notReady, p.unreachable)
	}
	if pod, ok := newPod(a); ok {
		return p.addAccount(ctx, a, pod)
	}
	return nil
}

// Validate implements admission.ValidationInterface. What Admit checked is checked again: the namespace may have begun
// to end meanwhile.
func (p *admit) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	switch {
	case a.GetOperation() == admission.Create:
		if pod, ok := newPod(a); ok {
			if err := checkMirror(pod); err != nil {
				return admission.NewForbidden(a, err)
			}
		}
		return p.checkNamespace(ctx, a)
	case a.GetOperation() == admission.Delete && a.GetResource().GroupResource() == corev1.Resource("namespaces") &&
		a.GetSubresource() == "":
		switch a.GetName() {
		case metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic:
			return apierrors.NewForbidden(corev1.Resource("namespaces"), a.GetName(),
				fmt.Errorf("this namespace may not be deleted"))
		}
	}
	return nil
}

// checkNamespace refuses new objects in a namespace that does not exist or is going away.
func (p *admit) checkNamespace(ctx context.Context, a admission.Attributes) error {
	if a.GetResource().Group == authorizationv1.GroupName { // a question about a namespace, which need not be there
		return nil
	}
	if a.GetNamespace() == "" || a.GetSubresource() != "" ||
		a.GetKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind() {
		return nil
	}
	ns, err := p.namespace(ctx, a.GetNamespace())
	if err != nil {
		return err
	}
	if ns.DeletionTimestamp == nil && ns.Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	refused := admission.NewForbidden(a,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", ns.Name))
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
	if a.GetOperation() != admission.Create {
		return nil, false
	}
	return wholePod(a)
}

// resizedPod is the pod of a request to pods/resize.
func resizedPod(a admission.Attributes) (*corev1.Pod, bool) {
	if a.GetOperation() != admission.Update || a.GetSubresource() != "resize" ||
		a.GetResource().GroupResource() != corev1.Resource("pods") {
		return nil, false
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	return pod, ok
}

// wholePod is the pod of a request that writes one, not a part of it.
func wholePod(a admission.Attributes) (*corev1.Pod, bool) {
	if a.GetSubresource() != "" || a.GetResource().GroupResource() != corev1.Resource("pods") {
		return nil, false
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	return pod, ok
}

// objectName is the name of an object, or what its name is to begin with.
func objectName(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	if m.GetName() == "" {
		return m.GetGenerateName()
	}
	return m.GetName()
}

// addTolerations lets a pod sit out some time of a node's absence unless the pod says something about it.
func addTolerations(pod *corev1.Pod, notReady, unreachable time.Duration) {
	for _, of := range []struct {
		key  string
		time time.Duration
	}{{corev1.TaintNodeNotReady, notReady}, {corev1.TaintNodeUnreachable, unreachable}} {
		if !tolerates(pod, of.key) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: of.key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: ptr.To(int64(of.time / time.Second)),
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
