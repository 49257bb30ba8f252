// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
	"k8s.io/utils/ptr"

	page "github.com/wherryproject/wherry/internal/ui/oidc"
)

// Options says how the server knows people and programs, besides the ways it always has: its CA's client certificates,
// the admin's token, service account tokens and bootstrap tokens. The fields are kube-apiserver's flags of the same
// names.
type Options struct {
	Anonymous  bool   // who shows nothing is system:anonymous, in the group system:unauthenticated; else refused
	ConfigFile string // an AuthenticationConfiguration (apiserver.config.k8s.io); in place of OIDC
	OIDC       OIDC

	AccountIssuers []string // of service account tokens: the first is written into new ones, all are accepted
	// what the discovery document names; default: the issuer's, or this server's if another is given
	AccountJWKSURI string
	APIAudiences   []string // whom tokens for this server are meant for; default: AccountIssuers
}

// OIDC is one OpenID Connect provider.
type OIDC struct {
	IssuerURL      string
	ClientID       string
	UsernameClaim  string
	UsernamePrefix string
	GroupsClaim    string
	GroupsPrefix   string
	RequiredClaims map[string]string
	CAFile         string
	SigningAlgs    []string
	// SecretFile has the secret of the client that ClientID names, by which the page signs people in at the provider;
	// "": it is a public client.
	SecretFile string
	// Scopes are those that the page asks for there, beside openid; none: by what the provider says that it has.
	Scopes []string
}

// Completed are Options that were checked and read.
type Completed struct {
	Options
	jwt        []apiserver.JWTAuthenticator
	anonymous  *apiserver.AnonymousAuthConfig // nil: nobody
	algorithms []string
	// Provider is where people may sign in to the page: that of the flags; nil: nowhere. Of the providers of a
	// configuration file nobody knows by which client people sign in.
	Provider *page.Provider
}

// Validate checks what can be checked without asking anybody; files that are named are read.
func (a Options) Validate() error {
	_, err := a.Complete()
	return err
}

// Complete checks the options, completes them and reads the files that they name.
func (a Options) Complete() (s Completed, err error) {
	s.Options = a
	if len(s.AccountIssuers) == 0 {
		s.AccountIssuers = []string{defaultIssuer}
	}
	if len(s.APIAudiences) == 0 {
		s.APIAudiences = slices.Clone(s.AccountIssuers)
	}
	if a.Anonymous {
		s.anonymous = &apiserver.AnonymousAuthConfig{Enabled: true}
	}
	errs := []error{checkIssuers(s.AccountIssuers, a.AccountJWKSURI)}
	switch {
	case a.ConfigFile != "":
		errs = append(errs, s.readConfig())
	case a.OIDC.IssuerURL != "" || a.OIDC.ClientID != "":
		jwt, err := a.OIDC.authenticator()
		s.jwt, s.algorithms = []apiserver.JWTAuthenticator{jwt}, a.OIDC.SigningAlgs
		errs = append(errs, err)
	case a.OIDC.set():
		errs = append(errs,
			errors.New("--oidc-issuer-url and --oidc-client-id are missing: the other --oidc flags have no effect without them"))
	}
	if err := errors.Join(errs...); err != nil {
		return s, err
	}
	return s, errors.Join(s.validate(), s.setProvider())
}

// validate checks everything the library can check without asking anybody.
func (s *Completed) validate() error {
	if len(s.jwt) == 0 && s.anonymous == nil {
		return nil // the compiler of expressions is not cheap to make
	}
	config := &apiserver.AuthenticationConfiguration{JWT: s.jwt, Anonymous: s.anonymous}
	errs := apiservervalidation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), config,
		s.AccountIssuers)
	if err := errs.ToAggregate(); err != nil {
		return fmt.Errorf("authentication: %w", err)
	}
	for _, alg := range s.algorithms {
		if known := oidc.AllValidSigningAlgorithms(); !slices.Contains(known, alg) {
			return fmt.Errorf("--oidc-signing-algs: %q is not one of %s", alg, strings.Join(known, ", "))
		}
	}
	return nil
}

func checkIssuers(issuers []string, jwksURI string) error {
	for _, issuer := range issuers {
		u, err := url.Parse(issuer)
		if issuer == "" || err != nil || strings.Contains(issuer, ":") && u.Scheme == "" {
			return fmt.Errorf("--service-account-issuer: %q is neither a URL nor a name without a colon", issuer)
		}
	}
	if jwksURI == "" {
		return nil
	}
	if u, err := url.Parse(jwksURI); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("--service-account-jwks-uri: %q is not an https URL", jwksURI)
	}
	return nil
}

func (o OIDC) set() bool {
	return o.UsernameClaim != "" || o.UsernamePrefix != "" || o.GroupsClaim != "" || o.GroupsPrefix != "" ||
		len(o.RequiredClaims) > 0 || o.CAFile != "" || len(o.SigningAlgs) > 0
}

// authenticator puts the flags into the form of the configuration file.
func (o OIDC) authenticator() (jwt apiserver.JWTAuthenticator, err error) {
	if o.IssuerURL == "" || o.ClientID == "" {
		return jwt, errors.New("--oidc-issuer-url and --oidc-client-id belong together; give both or neither")
	}
	jwt.Issuer = apiserver.Issuer{URL: o.IssuerURL, Audiences: []string{o.ClientID}}
	if o.CAFile != "" {
		ca, err := os.ReadFile(o.CAFile)
		if err != nil {
			return jwt, fmt.Errorf("--oidc-ca-file: %w", err)
		}
		jwt.Issuer.CertificateAuthority = string(ca)
	}
	claim := o.UsernameClaim
	if claim == "" {
		claim = "sub"
	}
	prefix := o.UsernamePrefix
	switch {
	case prefix == "-":
		prefix = ""
	case prefix == "" && claim != "email":
		prefix = o.IssuerURL + "#" // so that no provider can name the users of another
	}
	jwt.ClaimMappings.Username = apiserver.PrefixedClaimOrExpression{Claim: claim, Prefix: &prefix}
	if o.GroupsClaim != "" {
		jwt.ClaimMappings.Groups = apiserver.PrefixedClaimOrExpression{Claim: o.GroupsClaim,
			Prefix: ptr.To(o.GroupsPrefix)}
	} else if o.GroupsPrefix != "" {
		return jwt, errors.New("--oidc-groups-prefix needs --oidc-groups-claim; give both or neither")
	}
	for name, value := range o.RequiredClaims {
		jwt.ClaimValidationRules = append(jwt.ClaimValidationRules,
			apiserver.ClaimValidationRule{Claim: name, RequiredValue: value})
	}
	return jwt, nil
}

// readConfig reads ConfigFile, strictly.
func (s *Completed) readConfig() error {
	if s.OIDC.set() || s.OIDC.IssuerURL != "" || s.OIDC.ClientID != "" {
		return errors.New("--authentication-config and the --oidc flags exclude each other: put the provider into the file")
	}
	data, err := os.ReadFile(s.ConfigFile)
	if err != nil {
		return fmt.Errorf("--authentication-config: %w", err)
	}
	return s.parseConfig(data)
}

// parseConfig reads what is in ConfigFile.
func (s *Completed) parseConfig(data []byte) error {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	obj, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(), data)
	if runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) {
		return fmt.Errorf("--authentication-config %s: it must start with apiVersion: %s and kind: AuthenticationConfiguration",
			s.ConfigFile, apiserverv1.SchemeGroupVersion)
	}
	if err != nil {
		return fmt.Errorf("--authentication-config %s: %w", s.ConfigFile, err)
	}
	config, ok := obj.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return fmt.Errorf("--authentication-config %s: contains a %T, not an AuthenticationConfiguration", s.ConfigFile,
			obj)
	}
	if config.Anonymous != nil {
		if s.Anonymous {
			return fmt.Errorf("--anonymous-auth and the field anonymous in %s exclude each other", s.ConfigFile)
		}
		s.anonymous = config.Anonymous
	}
	if s.anonymous != nil && !s.anonymous.Enabled {
		s.anonymous = nil
	}
	s.jwt, s.algorithms = config.JWT, oidc.AllValidSigningAlgorithms()
	return nil
}
