// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/api/authn"
	"github.com/wherryproject/wherry/internal/ui/oidc/oidctest"
)

func tlsOf(t *testing.T, config *rest.Config) *tls.Config {
	t.Helper()
	c, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// provider is an OpenID Connect provider that signs as most do.
type provider struct {
	*oidctest.Provider
	caFile string
	asked  chan struct{} // has something when somebody asks for the keys' place
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{asked: make(chan struct{}, 64), caFile: filepath.Join(t.TempDir(), "ca.crt")}
	if p.Provider, err = oidctest.StartWith(jose.RS256, key); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Down(); err != nil {
			t.Error(err)
		}
	})
	p.Behave(oidctest.Behaviour{Before: func(r *http.Request) {
		if r.URL.Path == "/.well-known/openid-configuration" {
			p.asked <- struct{}{}
		}
	}})
	if err := os.WriteFile(p.caFile, p.CA, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// token issues an ID token for Jane; change is what is different.
func (p *provider) token(t *testing.T, change map[string]any) string {
	t.Helper()
	claims := map[string]any{
		"iss": p.URL, "aud": oidctest.Client, "sub": "1234", "email": "jane@example.com", "email_verified": true,
		"groups": []string{"dev", "ops"}, "hd": "example.com", "iat": time.Now().Unix(),
		"exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, change)
	token, err := p.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func signed(t *testing.T, key jose.SigningKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(key, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// withOIDC is a server with such an authentication, and how somebody with a token reaches it.
func withOIDC(t *testing.T, p *provider, dir, prefix string, a authn.Options) func(token string) *rest.Config {
	t.Helper()
	s, _ := serve(t, api.Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{shared.etcd.Endpoint()},
		EtcdPrefix: prefix, Authentication: a})
	admin := configOf(t, s)
	if p != nil {
		<-p.asked
	}
	return func(token string) *rest.Config {
		config := rest.AnonymousClientConfig(admin)
		config.BearerToken, config.QPS = token, -1
		return config
	}
}

// Identity: the OIDC flags, against a real provider.
// ATTACK C35.
func TestOIDC(t *testing.T) {
	p := newProvider(t)
	dir := t.TempDir()
	as := withOIDC(t, p, dir, "/oidc", authn.Options{OIDC: authn.OIDC{
		IssuerURL: p.URL, ClientID: "wherry", UsernameClaim: "email", GroupsClaim: "groups", GroupsPrefix: "corp:",
		RequiredClaims: map[string]string{"hd": "example.com"}, CAFile: p.caFile,
	}})
	good := p.token(t, nil)
	who, err := whoami(t, as(good))
	for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); who,
		err = whoami(t, as(good)) {
		time.Sleep(20 * time.Millisecond) // the library has read the document, and tells nobody when it has taken it in
	}
	if err != nil {
		t.Fatal(err)
	}
	if who.Username != "jane@example.com" || !slices.Contains(who.Groups, "corp:dev") ||
		!slices.Contains(who.Groups, "corp:ops") {
		t.Errorf("got %+v", who)
	}
	if _, err := clientOf(t, as(good)).CoreV1().Pods("default").List(t.Context(),
		metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("somebody who is known may do anything: %v", err)
	}
	admin := rest.CopyConfig(as(""))
	token, err := os.ReadFile(filepath.Join(dir, "pki", "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	admin.BearerToken = strings.TrimSpace(string(token))
	review, err := clientOf(t, admin).AuthenticationV1().TokenReviews().Create(t.Context(),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: good}}, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated || review.Status.User.Username != "jane@example.com" {
		t.Errorf("TokenReview: %+v, %v", review, err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	full := map[string]any{"iss": p.URL, "aud": "wherry", "sub": "1", "email": "jane@example.com",
		"email_verified": true, "hd": "example.com", "exp": time.Now().Add(time.Hour).Unix()}
	for name, token := range map[string]string{
		"expired":                p.token(t, map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}),
		"for another client":     p.token(t, map[string]any{"aud": "other"}),
		"of another issuer":      p.token(t, map[string]any{"iss": "https://elsewhere.example"}),
		"email not verified":     p.token(t, map[string]any{"email_verified": false}),
		"required claim differs": p.token(t, map[string]any{"hd": "evil.example"}),
		"another key": signed(t, jose.SigningKey{Algorithm: jose.RS256,
			Key: jose.JSONWebKey{Key: rsaKey, KeyID: "k1"}}, full),
		"another algorithm": signed(t, jose.SigningKey{Algorithm: jose.ES256, Key: other}, full),
	} {
		if who, err := whoami(t, as(token)); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: %v, %v", name, who, err)
		}
	}
}

// Identity: an authentication configuration file: providers with expressions, and where the unknown are let in.
func TestAuthenticationConfig(t *testing.T) {
	p := newProvider(t)
	ca, err := os.ReadFile(p.caFile)
	if err != nil {
		t.Fatal(err)
	}
	config := func(text string) string {
		file := filepath.Join(t.TempDir(), "authn.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	as := withOIDC(t, p, t.TempDir(), "/authnconfig", authn.Options{ConfigFile: config(`apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
  - path: /livez
jwt:
- issuer:
    url: ` + p.URL + `
    audiences: [wherry]
    certificateAuthority: |
      ` + strings.ReplaceAll(string(ca), "\n", "\n      ") + `
  claimMappings:
    username:
      expression: '"corp:" + claims.sub'
    groups:
      expression: 'dyn(claims.groups).filter(g, g != "ops")'
`)})
	good := p.token(t, nil)
	who, err := whoami(t, as(good))
	for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); who,
		err = whoami(t, as(good)) {
		time.Sleep(20 * time.Millisecond) // as above
	}
	if err != nil || who.Username != "corp:1234" || !slices.Equal(who.Groups, []string{"dev", "system:authenticated"}) {
		t.Errorf("got %+v, %v", who, err)
	}
	nobody := clientOf(t, as("")).Discovery().RESTClient()
	if _, err := nobody.Get().AbsPath("/livez").DoRaw(t.Context()); err != nil {
		t.Errorf("/livez: %v", err)
	}
	if _, err := nobody.Get().AbsPath("/readyz").DoRaw(t.Context()); !apierrors.IsUnauthorized(err) {
		t.Errorf("/readyz: %v", err)
	}

	for name, a := range map[string]authn.Options{
		"--authentication-config and the --oidc flags exclude": {ConfigFile: config("x"),
			OIDC: authn.OIDC{IssuerURL: "https://x", ClientID: "y"}},
		"unknown field": {ConfigFile: config("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwts: []\n")},
		"--oidc-issuer-url and --oidc-client-id belong together": {OIDC: authn.OIDC{IssuerURL: "https://x"}},
		"jwt[0].issuer.url": {OIDC: authn.OIDC{IssuerURL: "http://x", ClientID: "y"}},
		"--oidc-signing-algs": {OIDC: authn.OIDC{IssuerURL: "https://x", ClientID: "y",
			SigningAlgs: []string{"none"}}},
		"--oidc-groups-prefix":       {OIDC: authn.OIDC{IssuerURL: "https://x", ClientID: "y", GroupsPrefix: "z"}},
		"--oidc-ca-file":             {OIDC: authn.OIDC{IssuerURL: "https://x", ClientID: "y", CAFile: "/nowhere"}},
		"the other --oidc flags":     {OIDC: authn.OIDC{GroupsClaim: "g"}},
		"--service-account-issuer":   {AccountIssuers: []string{":x"}},
		"--service-account-jwks-uri": {AccountJWKSURI: "http://x/keys"},
		"no such file or directory":  {ConfigFile: "/nowhere"},
		"--anonymous-auth and the field": {Anonymous: true,
			ConfigFile: config("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: false}\n")},
	} {
		_, err := api.New(t.Context(), api.Config{DataDir: t.TempDir(), EtcdServers: []string{shared.etcd.Endpoint()},
			Authentication: a})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
}

// Identity: the unknown are refused unless --anonymous-auth lets them in, and then they may look at the server's health
// and no more; who shows something wrong is refused always. Service account tokens have the issuer that was asked for,
// and former ones are good.
func TestAnonymousAndIssuers(t *testing.T) {
	if _,
		err := clientOf(t,
		bearer(t,
			"")).Discovery().RESTClient().Get().AbsPath("/livez").DoRaw(t.Context()); !apierrors.IsUnauthorized(err) {
		t.Errorf("by default: %v", err)
	}
	dir := t.TempDir()
	cfg := api.Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{shared.etcd.Endpoint()},
		EtcdPrefix: "/anonymous", Authentication: authn.Options{Anonymous: true}}
	s, stop := serve(t, cfg)
	admin := configOf(t, s)
	nobody := rest.AnonymousClientConfig(admin)
	for _, path := range []string{"/livez", "/readyz", "/healthz", "/version"} {
		if _, err := clientOf(t, nobody).Discovery().RESTClient().Get().AbsPath(path).DoRaw(t.Context()); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := clientOf(t, nobody).CoreV1().Pods("default").List(t.Context(),
		metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:anonymous") {
		t.Errorf("pods: %v", err)
	}
	wrong := rest.CopyConfig(nobody)
	wrong.BearerToken = "wrong"
	if _,
		err := clientOf(t,
		wrong).Discovery().RESTClient().Get().AbsPath("/livez").DoRaw(t.Context()); !apierrors.IsUnauthorized(err) {
		t.Errorf("a wrong token: %v", err)
	}
	ns := namespace(t, clientOf(t, admin))
	before := accountToken(t, clientOf(t, admin), ns, "default")
	stop()

	cfg.Authentication = authn.Options{AccountIssuers: []string{"https://new.example",
		"https://kubernetes.default.svc.cluster.local"}}
	s, _ = serve(t, cfg)
	admin = configOf(t, s)
	after := accountToken(t, clientOf(t, admin), ns, "default")
	for name, token := range map[string]string{"before": before, "after": after} {
		c := rest.AnonymousClientConfig(admin)
		c.BearerToken = token
		if _, err := whoami(t, c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	parsed, err := jwt.ParseSigned(after, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.Claims
	if err := parsed.UnsafeClaimsWithoutVerification(&claims); err != nil || claims.Issuer != "https://new.example" {
		t.Errorf("issuer %q, %v", claims.Issuer, err)
	}
}
