// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/kubernetes"
)

// How long the API server's word about who may use the kubelet's API holds. It is less than the kubelet's 2 and 5
// minutes: a right that was taken away is gone soon.
const (
	tokenTTL  = time.Minute
	allowTTL  = time.Minute
	denyTTL   = 10 * time.Second
	askedTime = 10 * time.Second // what one question may take
)

// patience is how often a question is asked again while the API server is away.
func patience() *wait.Backoff {
	return &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3}
}

// access decides by the API server's word who may use the kubelet's API: tokens by TokenReview, rights by
// SubjectAccessReview, as the kubelet does in webhook mode
// (https://kubernetes.io/docs/reference/access-authn-authz/kubelet-authn-authz/).
type access struct {
	tokens authenticator.Request
	rights func() (authorizer.Authorizer, error) // made when it is first needed: it compiles CEL's environment
}

func newAccess(client kubernetes.Interface) (*access, error) {
	tokens, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient:  client.AuthenticationV1(),
		TokenAccessReviewTimeout: askedTime,
		WebhookRetryBackoff:      patience(),
		CacheTTL:                 tokenTTL,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("agent: who may use its API: %w", err)
	}
	return &access{tokens: tokens, rights: sync.OnceValues(func() (authorizer.Authorizer, error) {
		return authorizerfactory.DelegatingAuthorizerConfig{
			SubjectAccessReviewClient: client.AuthorizationV1(),
			AllowCacheTTL:             allowTTL,
			DenyCacheTTL:              denyTTL,
			WebhookRetryBackoff:       patience(),
		}.New()
	})}, nil
}

// authorize is the method of an authorizer.Authorizer. The group system:masters may do everything, on every server
// there is, so nobody is asked; an API server that is away locks its administrators out of no node.
func (a *access) authorize(ctx context.Context, attrs authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(attrs.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	rights, err := a.rights()
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	return rights.Authorize(ctx, attrs)
}
