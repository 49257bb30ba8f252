// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"
	"fmt"
	"reflect"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// review serves a kind of authorization.k8s.io: a create that answers in the object's status and stores nothing.
type review struct {
	kind, singular string
	namespaced     bool
	object         func() runtime.Object
	check          func(obj runtime.Object) field.ErrorList
	answer         func(ctx context.Context, obj runtime.Object) error
}

var (
	_ rest.Creater              = review{}
	_ rest.Scoper               = review{}
	_ rest.SingularNameProvider = review{}
)

// ServeReviews serves what `kubectl auth can-i` and programs that delegate their decisions ask.
func (z *Authorizers) ServeReviews(all registry.Served) {
	for plural, r := range map[string]review{
		"subjectaccessreviews": {kind: "SubjectAccessReview", singular: "subjectaccessreview",
			object: registry.New[authorizationv1.SubjectAccessReview],
			check: func(obj runtime.Object) field.ErrorList {
				return validateSubjectAccessReview(&obj.(*authorizationv1.SubjectAccessReview).Spec)
			},
			answer: func(ctx context.Context, obj runtime.Object) error {
				o := obj.(*authorizationv1.SubjectAccessReview)
				o.Status = z.review(ctx, whom(&o.Spec), o.Spec.ResourceAttributes, o.Spec.NonResourceAttributes)
				return nil
			}},
		"localsubjectaccessreviews": {kind: "LocalSubjectAccessReview", singular: "localsubjectaccessreview",
			namespaced: true, object: registry.New[authorizationv1.LocalSubjectAccessReview],
			check: func(obj runtime.Object) field.ErrorList {
				return validateLocalSubjectAccessReview(obj.(*authorizationv1.LocalSubjectAccessReview))
			},
			answer: func(ctx context.Context, obj runtime.Object) error {
				o := obj.(*authorizationv1.LocalSubjectAccessReview)
				if ns := request.NamespaceValue(ctx); o.Spec.ResourceAttributes.Namespace != ns {
					return apierrors.NewBadRequest(fmt.Sprintf("spec.resourceAttributes.namespace must match namespace: %s", ns))
				}
				o.Status = z.review(ctx, whom(&o.Spec), o.Spec.ResourceAttributes, nil)
				return nil
			}},
		"selfsubjectaccessreviews": {kind: "SelfSubjectAccessReview", singular: "selfsubjectaccessreview",
			object: registry.New[authorizationv1.SelfSubjectAccessReview],
			check: func(obj runtime.Object) field.ErrorList {
				spec := &obj.(*authorizationv1.SelfSubjectAccessReview).Spec
				return validateAccessAttributes(spec.ResourceAttributes, spec.NonResourceAttributes)
			},
			answer: func(ctx context.Context, obj runtime.Object) error {
				o := obj.(*authorizationv1.SelfSubjectAccessReview)
				u, ok := request.UserFrom(ctx)
				if !ok {
					return apierrors.NewBadRequest("no user present on request")
				}
				o.Status = z.review(ctx, u, o.Spec.ResourceAttributes, o.Spec.NonResourceAttributes)
				return nil
			}},
		"selfsubjectrulesreviews": {kind: "SelfSubjectRulesReview", singular: "selfsubjectrulesreview",
			object: registry.New[authorizationv1.SelfSubjectRulesReview], answer: z.rulesReview},
	} {
		all.Add(authorizationv1.SchemeGroupVersion, plural, r)
	}
}

// New implements rest.Storage.
func (r review) New() runtime.Object { return r.object() }

// Destroy implements rest.Storage.
func (review) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r review) NamespaceScoped() bool { return r.namespaced }

// GetSingularName implements rest.SingularNameProvider.
func (r review) GetSingularName() string { return r.singular }

// Create implements rest.Creater.
func (r review) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	if reflect.TypeOf(obj) != reflect.TypeOf(r.object()) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a %s: %T", r.kind, obj))
	}
	if r.check != nil {
		if errs := r.check(obj); len(errs) > 0 {
			return nil, apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName, Kind: r.kind}, "", errs)
		}
	}
	if validate != nil {
		if err := validate(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if err := r.answer(ctx, obj); err != nil {
		return nil, err
	}
	return obj, nil
}

func whom(spec *authorizationv1.SubjectAccessReviewSpec) user.Info {
	extra := make(map[string][]string, len(spec.Extra))
	for key, values := range spec.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: extra}
}

// review decides what would be decided of a request.
func (z *Authorizers) review(ctx context.Context, u user.Info, r *authorizationv1.ResourceAttributes,
	n *authorizationv1.NonResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	a := authorizer.AttributesRecord{User: u}
	if r != nil {
		a = authorizer.AttributesRecord{
			User: u, ResourceRequest: true, Verb: r.Verb, Namespace: r.Namespace, APIGroup: r.Group,
			APIVersion: matchAll(r.Version), Resource: r.Resource, Subresource: r.Subresource, Name: r.Name,
		}
		a.FieldSelectorRequirements, a.FieldSelectorParsingErr = fieldRequirements(r.FieldSelector)
		a.LabelSelectorRequirements, a.LabelSelectorParsingErr = labelRequirements(r.LabelSelector)
	} else if n != nil {
		a.Verb, a.Path = n.Verb, n.Path
	}
	decision, reason, err := z.Authorize(ctx, a)
	status := authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason,
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return status
}

func matchAll(version string) string {
	if version == "" {
		return "*"
	}
	return version
}

// rulesReview lists what the asking user may do in a namespace.
func (z *Authorizers) rulesReview(ctx context.Context, obj runtime.Object) error {
	o := obj.(*authorizationv1.SelfSubjectRulesReview)
	u, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewBadRequest("no user present on request")
	}
	if o.Spec.Namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	resources, others, incomplete, err := z.RulesFor(ctx, u, o.Spec.Namespace)
	o.Status = authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
		Incomplete: incomplete,
	}
	for _, r := range resources {
		o.Status.ResourceRules = append(o.Status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: r.GetVerbs(), APIGroups: r.GetAPIGroups(), Resources: r.GetResources(),
			ResourceNames: r.GetResourceNames()})
	}
	for _, r := range others {
		o.Status.NonResourceRules = append(o.Status.NonResourceRules, authorizationv1.NonResourceRule{
			Verbs: r.GetVerbs(), NonResourceURLs: r.GetNonResourceURLs()})
	}
	if err != nil {
		o.Status.EvaluationError = err.Error()
	}
	return nil
}
