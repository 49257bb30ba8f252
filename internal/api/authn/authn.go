// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	requestx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	"github.com/wherryproject/wherry/internal/pki"
)

const (
	// AdminUser is whom the admin token and the admin kubeconfig are of.
	AdminUser = "wherry-admin"
	// ServerUser is who this server is towards the nodes' HTTPS APIs.
	ServerUser = "wherry-apiserver"

	// tokenCacheTTL is how long a checked token stays good without another look at the store.
	tokenCacheTTL = 10 * time.Second
)

// Authenticators is how the server knows who asks.
type Authenticators struct {
	Request authenticator.Request
	// token knows bearer tokens of every kind, as TokenReview asks.
	token    authenticator.Token
	accounts *AccountTokens
	// Close ends what goes on in the background: asking OpenID Connect providers for their keys.
	Close context.CancelFunc
}

// New knows people and programs by client certificate and by bearer token: the admin's, those of the configured file,
// bootstrap tokens, service account tokens, and those of OpenID Connect providers. Whoever shows nothing is refused,
// unless the configuration lets the unknown in; whoever shows what is not good is always refused. What it keeps lies in
// folder; tokenFile is a CSV of further tokens.
func New(s Completed, folder, tokenFile string, ca *pki.CA, accounts *AccountTokens) (_ *Authenticators, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	audiences := authenticator.Audiences(s.APIAudiences)
	static, err := staticTokens(folder, tokenFile)
	if err != nil {
		return nil, err
	}
	static = append(static, bootstrapTokens{accounts.Lookup.Secret})
	signed := []authenticator.Token{accounts}
	for _, provider := range s.jwt {
		o, err := newOIDC(ctx, provider, s)
		if err != nil {
			return nil, fmt.Errorf("OpenID Connect provider %s: %w", provider.Issuer.URL, err)
		}
		signed = append(signed, authenticator.WrapAudienceAgnosticToken(audiences, o))
	}
	all := tokenunion.New(
		authenticator.WrapAudienceAgnosticToken(audiences, tokenunion.NewFailOnError(static...)),
		tokencache.New(tokenunion.New(signed...), false, tokenCacheTTL, tokenCacheTTL))

	options := requestx509.DefaultVerifyOptions()
	options.Roots = ca.Pool()
	options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	certificate := authenticator.WrapAudienceAgnosticRequest(audiences,
		requestx509.New(options, requestx509.CommonNameUserConversion))

	request := group.NewAuthenticatedGroupAdder(union.New(certificate, bearertoken.New(all),
		websocket.NewProtocolAuthenticator(all)))
	if a := s.anonymous; a != nil {
		request = union.NewFailOnError(request, anonymous.NewAuthenticator(a.Conditions))
	}
	return &Authenticators{Request: request, token: group.NewTokenGroupAdder(all, []string{user.AllAuthenticated}),
		accounts: accounts, Close: cancel}, nil
}

// staticTokens are the admin's and those of the configured file.
func staticTokens(folder, csv string) ([]authenticator.Token, error) {
	admin, err := adminToken(filepath.Join(folder, "admin.token"))
	if err != nil {
		return nil, err
	}
	all := []authenticator.Token{tokenfile.New(map[string]*user.DefaultInfo{
		admin: {Name: AdminUser, UID: AdminUser, Groups: []string{user.SystemPrivilegedGroup}},
	})}
	if csv == "" {
		return all, nil
	}
	file, err := tokenfile.NewCSV(csv)
	if err != nil {
		return nil, fmt.Errorf("token file %s: %w", csv, err)
	}
	return append(all, file), nil
}

// newOIDC asks the provider for its keys in the background: it may come up later than this server, even in a pod of it.
func newOIDC(ctx context.Context, provider apiserver.JWTAuthenticator, a Completed) (authenticator.Token, error) {
	o := oidc.Options{JWTAuthenticator: provider, SupportedSigningAlgs: a.algorithms,
		DisallowedIssuers: a.AccountIssuers}
	if text := provider.Issuer.CertificateAuthority; text != "" {
		ca, err := dynamiccertificates.NewStaticCAContent("oidc-ca", []byte(text))
		if err != nil {
			return nil, err
		}
		o.CAContentProvider = ca
	}
	return oidc.New(ctx, o)
}

// adminToken reads the admin's bearer token, or makes one at the first start. Only root may read the file.
func adminToken(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err == nil {
		token := strings.TrimSpace(string(data))
		if token == "" {
			return "",
				fmt.Errorf("admin token %s: the file is empty: restore the token from a backup, or write a new one to it", file)
		}
		return token, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("admin token: %w", err)
	}
	token, err := RandomToken()
	if err != nil {
		return "", err
	}
	return token, pki.WriteFile(file, []byte(token+"\n"), 0o600)
}

// RandomToken makes a bearer token that cannot be guessed.
func RandomToken() (string, error) {
	var b [24]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}
