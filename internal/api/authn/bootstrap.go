// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
)

// bootstrapTokens knows agents that join by tokens which Secrets in kube-system hold (Kubernetes docs: "Authenticating
// with Bootstrap Tokens").
type bootstrapTokens struct {
	secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// AuthenticateToken implements authenticator.Token. What does not look like a bootstrap token is left to other
// authenticators.
func (b bootstrapTokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	if !bootstraputil.IsValidBootstrapToken(token) {
		return nil, false, nil
	}
	id, secret, _ := strings.Cut(token, ".")
	s, err := b.secret(ctx, metav1.NamespaceSystem, bootstraputil.BootstrapTokenSecretName(id))
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	info, err := bootstrapUser(s, id, secret, time.Now())
	if err != nil {
		return nil, false, fmt.Errorf("bootstrap token %s: %w", id, err)
	}
	return &authenticator.Response{User: info}, true, nil
}

// bootstrapUser decides who the bearer of a bootstrap token is; the error never holds the secret.
func bootstrapUser(s *corev1.Secret, id, secret string, now time.Time) (user.Info, error) {
	field := func(name string) string { return string(s.Data[name]) }
	switch {
	case s.Type != bootstrapapi.SecretTypeBootstrapToken:
		return nil, fmt.Errorf("its Secret is not of type %s", bootstrapapi.SecretTypeBootstrapToken)
	case s.DeletionTimestamp != nil:
		return nil, errors.New("its Secret is being deleted")
	case subtle.ConstantTimeCompare(s.Data[bootstrapapi.BootstrapTokenSecretKey], []byte(secret)) != 1:
		return nil, errors.New("the secret is wrong")
	case field(bootstrapapi.BootstrapTokenIDKey) != id:
		return nil, errors.New("its Secret has another token-id")
	case field(bootstrapapi.BootstrapTokenUsageAuthentication) != "true":
		return nil, fmt.Errorf("%s is not true", bootstrapapi.BootstrapTokenUsageAuthentication)
	}
	if text := field(bootstrapapi.BootstrapTokenExpirationKey); text != "" {
		end, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, errors.New("its expiration is not an RFC 3339 time")
		}
		if !now.Before(end) {
			return nil, fmt.Errorf("it expired at %s", text)
		}
	}
	groups := []string{bootstrapapi.BootstrapDefaultGroup}
	for _, group := range strings.Split(field(bootstrapapi.BootstrapTokenExtraGroupsKey), ",") {
		if group == "" {
			continue
		}
		if err := bootstraputil.ValidateBootstrapGroupName(group); err != nil {
			return nil, err
		}
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return &user.DefaultInfo{Name: bootstrapapi.BootstrapUserPrefix + id, Groups: groups}, nil
}
