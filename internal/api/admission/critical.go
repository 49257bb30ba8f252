// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/wherryproject/wherry/internal/api/validation"
)

// verbUse is the verb of rights to things that nobody reads or writes: a priority class, a debug profile.
const verbUse = "use"

// mayBeCritical refuses a new pod of a system priority class outside kube-system, unless its maker has the right to use
// the class (RS-11). Such a pod is never evicted, whatever it takes from others. Kubernetes leaves it to clusters to
// limit these classes to kube-system ("Limit Priority Class consumption by default" in
// https://kubernetes.io/docs/concepts/policy/resource-quotas/), and most do.
func mayBeCritical(ctx context.Context, a admission.Attributes, pod *corev1.Pod,
	authz authorizer.UnconditionalAuthorizer) error {
	class := pod.Spec.PriorityClassName
	if !strings.HasPrefix(class, validation.SystemPrefix) || a.GetNamespace() == metav1.NamespaceSystem {
		return nil
	}
	asked := authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verbUse, Namespace: a.GetNamespace(), APIGroup: schedulingv1.GroupName,
		APIVersion: "v1", Resource: "priorityclasses", Name: class, ResourceRequest: true,
	}
	decision, _, err := authz.Authorize(ctx, asked)
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("ask whether user %q may use priority class %s: %w",
			a.GetUserInfo().GetName(), class, err))
	}
	return admission.NewForbidden(a,
		fmt.Errorf("pods of priority class %s are never evicted, so outside the namespace %s using it takes a right: "+
			"user %q cannot %s resource \"priorityclasses\" named %q in API group %q in the namespace %q; choose another class, or ask an administrator for a role with this right",
			class, metav1.NamespaceSystem, a.GetUserInfo().GetName(), verbUse, class, schedulingv1.GroupName,
			a.GetNamespace()))
}
