// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/podspec"
)

// debugProfiles has debug containers that amount to more than the profile general take a right of their own (RS-11,
// decision 030): to use that profile. It sees every way to an ephemeral container: the subresource, sessions, image
// exec.
type debugProfiles struct {
	authorizer func() authorizer.UnconditionalAuthorizer
}

var _ admission.ValidationInterface = debugProfiles{}

// Handles implements admission.Interface.
func (debugProfiles) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.ValidationInterface.
func (p debugProfiles) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "ephemeralcontainers" {
		return nil // no other request adds one
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	old, was := a.GetOldObject().(*corev1.Pod)
	if !ok || !was || old == nil {
		return nil
	}
	added := podspec.AddedEphemeral(pod, old)
	for i := range added {
		profile := podspec.ProfileNeeded(pod, &added[i])
		if profile == "" {
			continue
		}
		if err := p.may(ctx, a, profile, added[i].Name); err != nil {
			return err
		}
	}
	return nil
}

func (p debugProfiles) may(ctx context.Context, a admission.Attributes, profile, container string) error {
	gv := debugrun.GroupVersion()
	decision, _, err := p.authorizer().Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verbUse, Namespace: a.GetNamespace(), APIGroup: gv.Group, APIVersion: gv.Version,
		Resource: rbac.DebugProfiles, Name: profile, ResourceRequest: true,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("ask whether user %q may use the debug profile %s: %w",
			a.GetUserInfo().GetName(), profile, err))
	}
	return admission.NewForbidden(a,
		fmt.Errorf("ephemeral container %q has the privileges of the debug profile %s, which takes a right of its own: "+
			"user %q cannot %s resource %q named %q in API group %q in the namespace %q; choose --profile general or baseline, or ask for the role %s",
			container, profile, a.GetUserInfo().GetName(), verbUse, rbac.DebugProfiles, profile, gv.Group,
			a.GetNamespace(), rbac.DebugPrivilegedRole))
}
