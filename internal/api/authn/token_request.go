// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

const (
	minTokenSeconds     = 10 * 60
	maxTokenSeconds     = 1 << 32
	defaultTokenSeconds = 60 * 60
)

// tokenREST serves serviceaccounts/token: it issues a token for an account, bound to a pod, secret or node when asked.
type tokenREST struct{ tokens *AccountTokens }

var (
	_ rest.NamedCreater             = tokenREST{}
	_ rest.GroupVersionKindProvider = tokenREST{}
)

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (tokenREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
}

// New implements rest.Storage.
func (tokenREST) New() runtime.Object { return &authenticationv1.TokenRequest{} }

// Destroy implements rest.Storage.
func (tokenREST) Destroy() {}

// Create implements rest.NamedCreater.
func (r tokenREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*authenticationv1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a TokenRequest object: %T", obj))
	}
	req := in.DeepCopy()
	namespace := request.NamespaceValue(ctx)
	sa, err := r.tokens.Lookup.ServiceAccount(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if req.Name == "" {
		req.Name = name
	}
	if req.Namespace == "" {
		req.Namespace = namespace
	}
	if req.Name != name || req.Namespace != namespace {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the token request names service account %s/%s, the URL %s/%s",
			req.Namespace, req.Name, namespace, name))
	}
	if len(req.Spec.Audiences) == 0 {
		req.Spec.Audiences = slices.Clone(r.tokens.audiences)
	}
	if req.Spec.ExpirationSeconds == nil {
		seconds := int64(defaultTokenSeconds)
		req.Spec.ExpirationSeconds = &seconds
	}
	if errs := validateTokenRequest(req); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: authenticationv1.GroupName, Kind: "TokenRequest"}, "",
			errs)
	}
	if validate != nil {
		if err := validate(ctx, req.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	c := claims{Namespace: namespace, ServiceAccount: ref{sa.Name, string(sa.UID)}}
	if err := r.bind(ctx, &c, req.Spec.BoundObjectRef); err != nil {
		return nil, err
	}
	now := time.Now()
	lifetime := time.Duration(*req.Spec.ExpirationSeconds) * time.Second
	token, err := r.tokens.sign(c, req.Spec.Audiences, now, lifetime)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("sign token: %w", err))
	}
	req.Status = authenticationv1.TokenRequestStatus{Token: token,
		ExpirationTimestamp: metav1.NewTime(now.Add(lifetime))}
	req.CreationTimestamp = metav1.NewTime(now)
	return req, nil
}

func validateTokenRequest(req *authenticationv1.TokenRequest) (errs field.ErrorList) {
	path := field.NewPath("spec", "expirationSeconds")
	if n := *req.Spec.ExpirationSeconds; n < minTokenSeconds {
		errs = append(errs, field.Invalid(path, n, "may not specify a duration less than 10 minutes"))
	} else if n > maxTokenSeconds {
		errs = append(errs, field.Invalid(path, n, "may not specify a duration larger than 2^32 seconds"))
	}
	return errs
}

// bind writes the object the token depends on into its claims. A pod must use the account.
func (r tokenREST) bind(ctx context.Context, c *claims, bound *authenticationv1.BoundObjectReference) error {
	if bound == nil {
		return nil
	}
	gvk := schema.FromAPIVersionAndKind(bound.APIVersion, bound.Kind)
	lookup := r.tokens.Lookup
	var uid types.UID
	switch gvk {
	case corev1.SchemeGroupVersion.WithKind("Pod"):
		pod, err := lookup.Pod(ctx, c.Namespace, bound.Name)
		if err != nil {
			return err
		}
		if pod.Spec.ServiceAccountName != c.ServiceAccount.Name {
			return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", c.ServiceAccount.Name))
		}
		uid, c.Pod = pod.UID, &ref{pod.Name, string(pod.UID)}
		if pod.Spec.NodeName != "" {
			c.Node = &ref{Name: pod.Spec.NodeName}
			if node, err := lookup.Node(ctx, pod.Spec.NodeName); err == nil {
				c.Node.UID = string(node.UID)
			}
		}
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		secret, err := lookup.Secret(ctx, c.Namespace, bound.Name)
		if err != nil {
			return err
		}
		uid, c.Secret = secret.UID, &ref{secret.Name, string(secret.UID)}
	case corev1.SchemeGroupVersion.WithKind("Node"):
		node, err := lookup.Node(ctx, bound.Name)
		if err != nil {
			return err
		}
		uid, c.Node = node.UID, &ref{node.Name, string(node.UID)}
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", gvk))
	}
	if bound.UID != "" && bound.UID != uid {
		return apierrors.NewConflict(schema.GroupResource{Resource: gvk.Kind}, bound.Name,
			fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", bound.UID))
	}
	return nil
}
