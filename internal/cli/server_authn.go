// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/server"
)

// authnFlags say how the API server knows people and programs; they have kube-apiserver's and kube-controller-manager's
// names. The page's own begin with ui.
func authnFlags(cmd *cobra.Command, o *server.Options) {
	f, a := cmd.Flags(), &o.Authentication
	f.BoolVar(&a.Anonymous, "anonymous-auth", false,
		"accept requests without credentials, as user system:anonymous, subject to authorisation; otherwise they are rejected")
	f.StringVar(&a.ConfigFile, "authentication-config", "",
		"file with an AuthenticationConfiguration: OpenID Connect providers, and paths that accept anonymous requests")
	f.StringVar(&a.OIDC.IssuerURL, "oidc-issuer-url", "",
		"OpenID Connect provider whose ID tokens are accepted (https)")
	f.StringVar(&a.OIDC.ClientID, "oidc-client-id", "", "client ID that the provider's tokens must be issued for")
	f.StringVar(&a.OIDC.UsernameClaim, "oidc-username-claim", "", "claim that contains the user's name; default: sub")
	f.StringVar(&a.OIDC.UsernamePrefix, "oidc-username-prefix", "",
		"prefix for user names; - for none; default: the issuer URL and #, none for the claim email")
	f.StringVar(&a.OIDC.GroupsClaim, "oidc-groups-claim", "", "claim that contains the user's groups")
	f.StringVar(&a.OIDC.GroupsPrefix, "oidc-groups-prefix", "", "prefix of groups")
	cmdline.Pairs(f, &a.OIDC.RequiredClaims, "oidc-required-claim",
		"`CLAIM=VALUE` that a token must have; may be given more than once")
	f.StringVar(&a.OIDC.CAFile, "oidc-ca-file", "", "CA of the provider's certificate; default: the system's")
	f.StringSliceVar(&a.OIDC.SigningAlgs, "oidc-signing-algs", nil,
		"algorithms that tokens may be signed with; default: RS256")
	f.StringVar(&a.OIDC.SecretFile, "ui-oidc-client-secret-file", "",
		"file with the secret of --oidc-client-id, for signing in to the --ui page at the provider; default: none, as for public clients")
	f.StringSliceVar(&a.OIDC.Scopes, "ui-oidc-scopes", nil,
		"scopes that the --ui page requests from the provider, besides openid; default: those of profile, email, groups and offline_access that the provider says it supports")
	f.StringArrayVar(&a.AccountIssuers, "service-account-issuer", nil,
		"`ISSUER` of service account tokens; given more than once, the first is written into new tokens and all are accepted; default: https://kubernetes.default.svc.cluster.local")
	f.StringVar(&a.AccountJWKSURI, "service-account-jwks-uri", "",
		"URL of the keys for service account tokens in the discovery document; default: this server, by the default issuer as pods know it")
	f.StringSliceVar(&a.APIAudiences, "api-audiences", nil,
		"audiences of tokens for this API; default: the service account issuers")
	f.DurationVar(&o.SigningDuration, "cluster-signing-duration", o.SigningDuration,
		"maximum lifetime of certificates signed on request")
}
