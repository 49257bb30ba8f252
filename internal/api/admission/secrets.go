// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"

	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/nodeauth"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// mountableSecrets holds pods of such accounts to their secrets, whichever way a secret gets into them.
type mountableSecrets struct{ accounts *registry.Ruled }

var _ admission.ValidationInterface = mountableSecrets{}

func newMountableSecrets(st registry.Stores) mountableSecrets {
	return mountableSecrets{registry.NewRuledBy(st["serviceaccounts"], func(obj runtime.Object) bool {
		account, ok := obj.(*corev1.ServiceAccount)
		return ok && account.Annotations[kinds.EnforceSecrets] == "true"
	})}
}

// Handles implements admission.Interface.
func (mountableSecrets) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface. Namespaces without such an account cost no read.
func (p mountableSecrets) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || a.GetResource().GroupResource() != corev1.Resource("pods") ||
		a.GetSubresource() != "" && a.GetSubresource() != "ephemeralcontainers" {
		return nil
	}
	if has, err := p.accounts.Has(ctx, a.GetNamespace()); err != nil || !has || pod.Spec.ServiceAccountName == "" {
		return err
	}
	account, err := registry.Get[corev1.ServiceAccount](ctx, p.accounts.Of, a.GetNamespace(),
		pod.Spec.ServiceAccountName)
	switch {
	case apierrors.IsNotFound(err) && a.GetOperation() == admission.Update:
		return nil // nothing says so any more
	case err != nil:
		return admission.NewForbidden(a, fmt.Errorf("error looking up service account %s/%s: %w", a.GetNamespace(),
			pod.Spec.ServiceAccountName, err))
	case account.Annotations[kinds.EnforceSecrets] != "true":
		return nil
	}
	if name := secretBeyond(account, pod); name != "" {
		return admission.NewForbidden(a,
			fmt.Errorf("pods of service account %[2]s may not use secret %[1]q: the account has the annotation %[3]s and does not list it",
				name, account.Name, kinds.EnforceSecrets))
	}
	return nil
}

// secretBeyond is a secret that a pod uses and its account does not name, or "".
func secretBeyond(account *corev1.ServiceAccount, pod *corev1.Pod) string {
	named := sets.New[string]()
	for _, s := range account.Secrets {
		named.Insert(s.Name)
	}
	for _, s := range account.ImagePullSecrets {
		named.Insert(s.Name)
	}
	for _, ref := range nodeauth.Refs(pod) {
		if ref.Kind == nodeauth.Secret && !named.Has(ref.Name) {
			return ref.Name
		}
	}
	return ""
}
