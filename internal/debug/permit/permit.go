// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/wherryproject/wherry/internal/api/rbac"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/features"
)

// Permit is whom and what a server asks before a pod is debugged.
type Permit struct {
	authorizer authorizer.UnconditionalAuthorizer
	admission  admission.Interface
	scheme     *runtime.Scheme
	gates      *features.Gates
}

// New makes a Permit; the scheme is the one by which admission converts what it is shown.
func New(a authorizer.UnconditionalAuthorizer, plugins admission.Interface, scheme *runtime.Scheme,
	gates *features.Gates) *Permit {
	return &Permit{authorizer: a, admission: admission.WithAudit(plugins), scheme: scheme, gates: gates}
}

// Session lets a client make a debug container and enter it: by the feature gates, and by the rights to exec in the pod
// and to add ephemeral containers to it (EC-20).
func (p *Permit) Session(ctx context.Context, pod string) error {
	if err := p.sessionsOn(pod); err != nil {
		return err
	}
	return p.allowed(ctx, pod, rightTo("create", "exec"), rightTo("update", "ephemeralcontainers"))
}

// ImageExec lets a client run a command from an image in a pod: by the feature gate, and by the right to exec in the
// pod and that of image exec itself (IX-07, docs/decisions/013-who-may-debug.md).
func (p *Permit) ImageExec(ctx context.Context, pod string) error {
	if err := p.imageExecOn(pod); err != nil {
		return err
	}
	return p.allowed(ctx, pod, rightTo("create", "exec"),
		right{verb: "create", group: debugrun.GroupVersion().Group, resource: rbac.ImageExecs})
}

// right is something a client must be allowed to do to a pod. The resource is one of the pod's own unless the group
// says otherwise.
type right struct{ verb, group, resource, subresource string }

// rightTo is one to a subresource of the pod.
func rightTo(verb, subresource string) right {
	return right{verb: verb, resource: "pods", subresource: subresource}
}

// allowed refuses a client that lacks one of the rights, in the words of any other refusal.
func (p *Permit) allowed(ctx context.Context, name string, rights ...right) error {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewUnauthorized("the request has no user")
	}
	for _, r := range rights {
		asked := authorizer.AttributesRecord{
			User: u, Verb: r.verb, Namespace: request.NamespaceValue(ctx), APIGroup: r.group, APIVersion: "v1",
			Resource: r.resource, Subresource: r.subresource, Name: name, ResourceRequest: true,
		}
		decision, reason, err := p.authorizer.Authorize(ctx, asked)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		if decision != authorizer.DecisionAllow {
			return responsewriters.ForbiddenStatusError(asked, reason)
		}
	}
	return nil
}

// sessionsOn refuses what needs ephemeral containers where there are none, as their subresource does (EC-24), and debug
// sessions where these are off.
func (p *Permit) sessionsOn(name string) error {
	message := ""
	switch {
	case !p.gates.Enabled(features.EphemeralContainers):
		message = fmt.Sprintf("pod %s: there are no debug containers on this server: the feature gate %s is off", name,
			features.EphemeralContainers)
	case !p.gates.Enabled(features.DebugSessions):
		message = fmt.Sprintf("pod %s: there are no debug sessions on this server: the feature gate %s is off; kubectl debug does without them", name, features.DebugSessions)
	default:
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: message,
		Details: &metav1.StatusDetails{Kind: "pods/ephemeralcontainers", Name: name},
	}}
}

// imageExecOn refuses image exec where it is off, in the way of a node that cannot do it (IX-12).
func (p *Permit) imageExecOn(name string) error {
	if p.gates.Enabled(features.ImageExec) {
		return nil
	}
	return Refusal(http.StatusNotImplemented, "NotImplemented", name,
		"image exec into pod %s: not implemented: the feature gate %s is off on this server", name, features.ImageExec)
}

// Attributes show admission the update as one of pods/ephemeralcontainers (EC-21).
func (p *Permit) Attributes(ctx context.Context, pod, old runtime.Object) admission.Attributes {
	user, _ := request.UserFrom(ctx)
	name := ""
	if pod, ok := old.(*corev1.Pod); ok && pod != nil {
		name = pod.Name
	}
	v1 := corev1.SchemeGroupVersion
	return admission.NewAttributesRecord(pod, old, v1.WithKind("Pod"), request.NamespaceValue(ctx), name,
		v1.WithResource("pods"), "ephemeralcontainers", admission.Update, registry.UpdateOptions(), false, user)
}

// Admit has the plug-ins that change objects see a pod that is to be stored in place of old. They may change it.
func (p *Permit) Admit(ctx context.Context, pod, old runtime.Object) error {
	m, ok := p.admission.(admission.MutationInterface)
	if !ok || !m.Handles(admission.Update) {
		return nil
	}
	return m.Admit(ctx, p.Attributes(ctx, pod, old), p.objects())
}

// Validate has the plug-ins that judge objects see a pod that is to be stored in place of old.
func (p *Permit) Validate(ctx context.Context, pod, old runtime.Object) error {
	v, ok := p.admission.(admission.ValidationInterface)
	if !ok || !v.Handles(admission.Update) {
		return nil
	}
	return v.Validate(ctx, p.Attributes(ctx, pod, old), p.objects())
}

// objects is how admission converts what it is shown.
func (p *Permit) objects() admission.ObjectInterfaces {
	return admission.NewObjectInterfacesFromScheme(p.scheme)
}

// Refusal is a Status with words of our own.
func Refusal(code int32, reason metav1.StatusReason, pod, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
		Details: &metav1.StatusDetails{Kind: "pods", Name: pod},
	}}
}
