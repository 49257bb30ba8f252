// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/registry"
)

// Serve serves the reviews of who somebody is, and the tokens of service accounts.
func (a *Authenticators) Serve(all registry.Served) {
	gv := authenticationv1.SchemeGroupVersion
	all.Add(gv, "tokenreviews", tokenReviewREST{a.token, a.accounts.audiences})
	all.Add(gv, "selfsubjectreviews", selfReviewREST{})
	all.Add(corev1.SchemeGroupVersion, "serviceaccounts/token", tokenREST{a.accounts})
}

// tokenReviewREST says whose a bearer token is.
type tokenReviewREST struct {
	tokens    authenticator.Token
	audiences authenticator.Audiences // whom tokens for this server are meant for
}

var (
	_ rest.Creater              = tokenReviewREST{}
	_ rest.Scoper               = tokenReviewREST{}
	_ rest.SingularNameProvider = tokenReviewREST{}
)

// Destroy implements rest.Storage.
func (tokenReviewREST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (tokenReviewREST) NamespaceScoped() bool { return false }

// New implements rest.Storage.
func (tokenReviewREST) New() runtime.Object { return &authenticationv1.TokenReview{} }

// GetSingularName implements rest.SingularNameProvider.
func (tokenReviewREST) GetSingularName() string { return "tokenreview" }

// Create implements rest.Creater. A token that is not good is an answer, not an error.
func (r tokenReviewREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*authenticationv1.TokenReview)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a TokenReview: %T", obj))
	}
	review := in.DeepCopy()
	switch {
	case review.Namespace != "":
		return nil, apierrors.NewBadRequest(fmt.Sprintf("namespace is not allowed on this type: %s", review.Namespace))
	case review.Spec.Token == "":
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	if validate != nil {
		if err := validate(ctx, review.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	review.Status = r.review(ctx, review.Spec)
	return review, nil
}

func (r tokenReviewREST) review(ctx context.Context,
	spec authenticationv1.TokenReviewSpec) (status authenticationv1.TokenReviewStatus) {
	wanted := authenticator.Audiences(spec.Audiences)
	if len(wanted) == 0 {
		wanted = r.audiences
	}
	answer, ok, err := r.tokens.AuthenticateToken(authenticator.WithAudiences(ctx, wanted), spec.Token)
	switch {
	case err == nil && !ok:
		err = errors.New("unknown token")
	case err == nil && len(wanted.Intersect(answer.Audiences)) == 0:
		err = fmt.Errorf("the token is not meant for any of %v", []string(wanted))
	}
	if err != nil {
		status.Error = err.Error()
		return status
	}
	status.Authenticated, status.User = true, UserInfo(answer.User)
	if len(spec.Audiences) > 0 {
		status.Audiences = wanted.Intersect(answer.Audiences)
	}
	return status
}

// UserInfo is a user in the form in which the API tells of one.
func UserInfo(u user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}

// selfReviewREST says who the asking one is: `kubectl auth whoami`.
type selfReviewREST struct{}

var (
	_ rest.Creater              = selfReviewREST{}
	_ rest.Scoper               = selfReviewREST{}
	_ rest.SingularNameProvider = selfReviewREST{}
)

// Destroy implements rest.Storage.
func (selfReviewREST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (selfReviewREST) NamespaceScoped() bool { return false }

// New implements rest.Storage.
func (selfReviewREST) New() runtime.Object { return &authenticationv1.SelfSubjectReview{} }

// GetSingularName implements rest.SingularNameProvider.
func (selfReviewREST) GetSingularName() string { return "selfsubjectreview" }

// Create implements rest.Creater.
func (selfReviewREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	if _, ok := obj.(*authenticationv1.SelfSubjectReview); !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a SelfSubjectReview: %T", obj))
	}
	if validate != nil {
		if err := validate(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("the request has no user")
	}
	return &authenticationv1.SelfSubjectReview{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Now()},
		Status:     authenticationv1.SelfSubjectReviewStatus{UserInfo: UserInfo(who)},
	}, nil
}
