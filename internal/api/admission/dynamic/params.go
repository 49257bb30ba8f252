// SPDX-License-Identifier: Apache-2.0

package dynamic

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/wherryproject/wherry/internal/api/kinds"
)

// policyParams lets nobody have a policy read what he or she may not read: a policy's parameters are read with the
// server's rights, and its messages may tell what is in them. Who writes a policy must have the right to get every
// object of its paramKind, who writes a binding that to get or list what its paramRef names.
type policyParams struct {
	dynamic *Plugins
	may     func() authorizer.UnconditionalAuthorizer // known when the server is complete
}

var _ admission.ValidationInterface = policyParams{}

// Handles implements admission.Interface.
func (policyParams) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface.
func (p policyParams) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Group != admissionv1.GroupName || a.GetSubresource() != "" {
		return nil
	}
	if kind := paramKindOf(a.GetObject()); kind != nil && !equality.Semantic.DeepEqual(kind,
		paramKindOf(a.GetOldObject())) {
		return p.check(ctx, a, kind, &admissionv1.ParamRef{Name: "*", Namespace: "*"})
	}
	policy, ref := paramRefOf(a.GetObject())
	if ref == nil {
		return nil
	}
	if before, was := paramRefOf(a.GetOldObject()); before == policy && equality.Semantic.DeepEqual(ref, was) {
		return nil
	}
	kind, err := p.kindOf(ctx, a.GetResource().Resource, policy)
	if err != nil {
		return err
	}
	if ref.Namespace == "" {
		ref.Namespace = "*" // that of whatever object is judged
	}
	return p.check(ctx, a, kind, ref)
}

// kindOf is the paramKind of a binding's policy. Of a policy that is not there nobody knows the kind: it may be any.
func (p policyParams) kindOf(ctx context.Context, bindings, name string) (*admissionv1.ParamKind, error) {
	plural := kinds.ValidatingPolicies
	if bindings == "mutatingadmissionpolicybindings" {
		plural = "mutatingadmissionpolicies"
	}
	r := p.dynamic.stores[plural]
	obj, err := r.Get(r.Within(ctx, ""), name, &metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &admissionv1.ParamKind{APIVersion: "*/*", Kind: "*"}, nil
	case err != nil:
		return nil, err
	}
	return paramKindOf(obj), nil
}

// check asks for the right to read params of a kind; no kind, no params.
func (p policyParams) check(ctx context.Context, a admission.Attributes, kind *admissionv1.ParamKind,
	ref *admissionv1.ParamRef) error {
	if kind == nil {
		return nil
	}
	resource, err := p.resource(kind)
	if err != nil {
		return err
	}
	want := authorizer.AttributesRecord{User: a.GetUserInfo(), Verb: "get", Name: ref.Name, Namespace: ref.Namespace,
		ResourceRequest: true, APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource}
	if ref.Name == "" {
		want.Verb = "list"
	}
	decision, reason, err := p.may().Authorize(ctx, want)
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		reason = err.Error()
	}
	what := fmt.Sprintf("%s of %s %q in namespace %q", want.Verb, resource.GroupResource(), want.Name, want.Namespace)
	return admission.NewForbidden(a,
		fmt.Errorf("to have a policy read parameters, you need permission to read them: no %s (%s)", what, reason))
}

// resource is that of a kind of params. For one that is not served yet, the right must be one to read everything of its
// group.
func (p policyParams) resource(kind *admissionv1.ParamKind) (schema.GroupVersionResource, error) {
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return schema.GroupVersionResource{}, apierrors.NewBadRequest(err.Error())
	}
	if kind.Kind == "*" {
		return gv.WithResource("*"), nil
	}
	parts, err := p.dynamic.partsFor()
	if err != nil {
		return schema.GroupVersionResource{}, apierrors.NewInternalError(err)
	}
	mapping, err := parts.mapper.RESTMapping(gv.WithKind(kind.Kind).GroupKind(), gv.Version)
	switch {
	case meta.IsNoMatchError(err):
		return gv.WithResource("*"), nil
	case err != nil:
		return schema.GroupVersionResource{}, apierrors.NewInternalError(fmt.Errorf("look for kind %s: %w", kind.Kind,
			err))
	}
	return mapping.Resource, nil
}

func paramKindOf(obj runtime.Object) *admissionv1.ParamKind {
	switch p := obj.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		return p.Spec.ParamKind
	case *admissionv1.MutatingAdmissionPolicy:
		return p.Spec.ParamKind
	}
	return nil
}

// paramRefOf is the policy that a binding names, and a copy of its paramRef.
func paramRefOf(obj runtime.Object) (policy string, _ *admissionv1.ParamRef) {
	switch b := obj.(type) {
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		return b.Spec.PolicyName, b.Spec.ParamRef.DeepCopy()
	case *admissionv1.MutatingAdmissionPolicyBinding:
		return b.Spec.PolicyName, b.Spec.ParamRef.DeepCopy()
	}
	return "", nil
}
