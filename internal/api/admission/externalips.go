// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	podsecuritylabels "k8s.io/pod-security-admission/api"

	"github.com/wherryproject/wherry/internal/api/rbac"
)

// externalIPs has it take a right of its own to name a service's external addresses in a namespace that is held to a
// Pod Security level (RS-11): with them, a service takes the connections of the whole machine and of all its pods to an
// address, whosever it is (CVE-2020-8554). Where nothing is decided about a namespace, or all is let in, it is as in
// Kubernetes.
type externalIPs struct {
	security   podSecurity
	authorizer func() authorizer.UnconditionalAuthorizer
}

var _ admission.ValidationInterface = externalIPs{}

// Handles implements admission.Interface.
func (externalIPs) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface.
func (p externalIPs) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("services") || a.GetSubresource() != "" {
		return nil
	}
	service, ok := a.GetObject().(*corev1.Service)
	if !ok {
		return nil
	}
	old, _ := a.GetOldObject().(*corev1.Service)
	if !slices.ContainsFunc(service.Spec.ExternalIPs, func(ip string) bool {
		return old == nil || !slices.Contains(old.Spec.ExternalIPs, ip)
	}) {
		return nil
	}
	level, err := p.security.level(ctx, a.GetNamespace())
	if err != nil || level == podsecuritylabels.LevelPrivileged {
		return err
	}
	return p.may(ctx, a, level)
}

func (p externalIPs) may(ctx context.Context, a admission.Attributes, level podsecuritylabels.Level) error {
	decision, _, err := p.authorizer().Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verbUse, Namespace: a.GetNamespace(), APIVersion: "v1", Resource: "services",
		Subresource: rbac.ExternalIPs, Name: a.GetName(), ResourceRequest: true,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("ask whether user %q may name external addresses of services: %w",
			a.GetUserInfo().GetName(), err))
	}
	return admission.NewForbidden(a,
		fmt.Errorf("spec.externalIPs: the namespace is held to the Pod Security level %s, "+
			"where it takes a right of its own to take the connections to an address from the whole machine: user %q cannot "+
			"%s resource \"services/%s\" in the namespace %q; leave the field out, or ask an administrator for that right",
			level, a.GetUserInfo().GetName(), verbUse, rbac.ExternalIPs, a.GetNamespace()))
}
