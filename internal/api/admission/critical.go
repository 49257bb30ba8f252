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
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/wherryproject/wherry/internal/api/validation"
)

// verbUse is the verb of rights to things that nobody reads or writes: a priority class, a debug profile.
const verbUse = "use"

// mayBeCritical refuses a new pod of a system priority class outside kube-system, unless its maker or its service
// account has the right to use the class (RS-11). Such a pod is never evicted, whatever it takes from others.
// Kubernetes leaves it to clusters to limit these classes to kube-system ("Limit Priority Class consumption by default"
// in https://kubernetes.io/docs/concepts/policy/resource-quotas/), and most do.
//
// The account counts because a controller makes the pods of a DaemonSet, which has no rights of the one who made that.
// Nobody gets more by it: whoever may make pods of an account can act as the account.
func mayBeCritical(ctx context.Context, a admission.Attributes, pod *corev1.Pod,
	authz authorizer.UnconditionalAuthorizer) error {
	class := pod.Spec.PriorityClassName
	if !strings.HasPrefix(class, validation.SystemPrefix) || a.GetNamespace() == metav1.NamespaceSystem {
		return nil
	}
	asking := []user.Info{a.GetUserInfo()}
	account := pod.Spec.ServiceAccountName
	if account != "" { // a static pod's mirror has none
		asking = append(asking, accountUser(a.GetNamespace(), account))
	}
	for _, who := range asking {
		decision, _, err := authz.Authorize(ctx, authorizer.AttributesRecord{
			User: who, Verb: verbUse, Namespace: a.GetNamespace(), APIGroup: schedulingv1.GroupName,
			APIVersion: "v1", Resource: "priorityclasses", Name: class, ResourceRequest: true,
		})
		switch {
		case decision == authorizer.DecisionAllow:
			return nil
		case err != nil:
			return apierrors.NewInternalError(fmt.Errorf("ask whether user %q may use priority class %s: %w",
				who.GetName(), class, err))
		}
	}
	return admission.NewForbidden(a,
		fmt.Errorf("pods of priority class %s are never evicted, so outside the namespace %s using it takes a right, of who makes the pod or of its service account: "+
			"user %q cannot %s resource \"priorityclasses\" named %q in API group %q in the namespace %q, nor can service account %q; choose another class, or ask an administrator for a role with this right",
			class, metav1.NamespaceSystem, a.GetUserInfo().GetName(), verbUse, class, schedulingv1.GroupName,
			a.GetNamespace(), account))
}

// accountUser is a service account as authentication knows it by its token.
func accountUser(namespace, name string) user.Info {
	return &user.DefaultInfo{Name: serviceaccount.MakeUsername(namespace, name),
		Groups: append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated)}
}
