// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	authzunion "k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
)

// Where kube-apiserver says by which certificate it is known.
const (
	frontNamespace = "kube-system"
	frontName      = "extension-apiserver-authentication"
)

// front is how kube-apiserver is known, the one client that is listened to: it has authenticated who asks, and written
// it into its audit log. There are no tokens and no certificates of people here, by which they would get around that
// (DA-05).
type front struct {
	ca      *dynamiccertificates.ConfigMapCAController
	headers *headerrequest.RequestHeaderAuthRequestController
}

func newFront(client kubernetes.Interface) (front, error) {
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("front-proxy", frontNamespace, frontName,
		"requestheader-client-ca-file", client)
	if err != nil {
		return front{}, err
	}
	return front{ca: ca, headers: headerrequest.NewRequestHeaderAuthRequestController(frontName, frontNamespace, client,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")}, nil
}

// load reads the ConfigMap for the first time.
func (f front) load(ctx context.Context) error {
	if err := errors.Join(f.ca.RunOnce(ctx), f.headers.RunOnce(ctx)); err != nil {
		return fmt.Errorf("how kube-apiserver is known cannot be read from ConfigMap %s/%s: %w", frontNamespace,
			frontName, err)
	}
	return nil
}

// run follows the ConfigMap until ctx is done.
func (f front) run(ctx context.Context) {
	go f.ca.Run(ctx, 1)
	f.headers.Run(ctx, 1)
}

// config is how the library knows kube-apiserver.
func (f front) config() *authenticatorfactory.RequestHeaderConfig {
	return &authenticatorfactory.RequestHeaderConfig{
		UsernameHeaders: headerrequest.StringSliceProviderFunc(f.headers.UsernameHeaders),
		UIDHeaders:      headerrequest.StringSliceProviderFunc(f.headers.UIDHeaders),
		GroupHeaders:    headerrequest.StringSliceProviderFunc(f.headers.GroupHeaders),
		ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(
			f.headers.ExtraHeaderPrefixes),
		AllowedClientNames: headerrequest.StringSliceProviderFunc(f.headers.AllowedClientNames),
		CAContentProvider:  f.ca,
	}
}

// healthPaths are open to everybody: a kubelet asks them without a certificate.
func healthPaths() []string { return []string{"/healthz", "/livez", "/readyz"} }

// authenticator knows kube-apiserver, and nobody at the health paths.
func (f front) authenticator() authenticator.Request {
	c := f.config()
	var open []apiserver.AnonymousAuthCondition
	for _, p := range healthPaths() {
		open = append(open, apiserver.AnonymousAuthCondition{Path: p})
	}
	return union.New(
		headerrequest.NewDynamicVerifyOptionsSecure(f.ca.VerifyOptions, c.AllowedClientNames, c.UsernameHeaders,
			c.UIDHeaders, c.GroupHeaders, c.ExtraHeaderPrefixes),
		anonymous.NewAuthenticator(open))
}

// How long an answer of kube-apiserver about a right holds here.
const (
	allowedFor = 10 * time.Second
	deniedFor  = 5 * time.Second
)

// newAuthorizer asks kube-apiserver about rights.
func newAuthorizer(client kubernetes.Interface) (authorizer.Authorizer, error) {
	open, err := path.NewAuthorizer(healthPaths())
	if err != nil {
		return nil, err
	}
	delegated, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), AllowCacheTTL: allowedFor, DenyCacheTTL: deniedFor,
		WebhookRetryBackoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5},
	}.New()
	if err != nil {
		return nil, err
	}
	return authzunion.New(
		authzunion.NamedAuthorizer{AuthorizerName: "privileged", Authorizer: authorizerfactory.NewPrivilegedGroups(
			"system:masters")},
		authzunion.NamedAuthorizer{AuthorizerName: "health", Authorizer: open},
		authzunion.NamedAuthorizer{AuthorizerName: "cluster", Authorizer: delegated})
}
