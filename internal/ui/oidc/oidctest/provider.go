// SPDX-License-Identifier: Apache-2.0

package oidctest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Client is the ID of the only client that the provider knows, Secret its secret, which has to be escaped.
const (
	Client = "wherry"
	Secret = "of the page: 100 % + &"
)

// Behaviour is what a provider does otherwise than it should, or may do either way. Its zero value is a good one.
type Behaviour struct {
	Refuse  string                   // this error comes back in place of a code
	Change  func(code string) string // what comes back in place of the code
	State   string                   // comes back in place of the state
	Nonce   string                   // is in ID tokens in place of the nonce
	Life    time.Duration            // how long ID tokens are good; 0: an hour
	Forever bool                     // there is no token to renew by
	Subject string                   // whose tokens are renewed, in place of those of who had them
	Refresh string                   // this error answers who wants to renew
	NoID    bool                     // who renews gets no ID token
	Status  int                      // of all answers about tokens, which have a page in place of JSON
	Methods []string                 // by which clients show their secret, as is announced; none: it is not announced
	Scopes  []string                 // as is announced; nil: openid, email, offline_access; empty: it is not announced
	// Before is called with each request before it is answered. It may wait.
	Before func(*http.Request)
}

// Provider is an OpenID Connect provider.
type Provider struct {
	URL string
	CA  []byte // PEM, of its certificate

	address string
	cert    tls.Certificate
	by      jose.SignatureAlgorithm
	key     crypto.Signer

	mu      sync.Mutex
	server  *http.Server
	acts    Behaviour
	codes   map[string]*asked // those that have not been used
	renew   map[string]*asked // by token
	counted Counts
	ends    time.Time
}

// Counts are how often something was asked for.
type Counts struct{ Signed, Renewed, Revoked int }

// asked is what a client has asked for, and for whom.
type asked struct {
	user, back, challenge, nonce string
	again                        bool // it is a renewal
}

// Start starts a provider on a port of its own, which signs by ES256.
func Start() (*Provider, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return StartWith(jose.ES256, key)
}

// StartWith starts one that signs as said.
func StartWith(by jose.SignatureAlgorithm, key crypto.Signer) (*Provider, error) {
	made := httptest.NewTLSServer(http.NotFoundHandler()) // which has a certificate for loopback
	p := &Provider{URL: made.URL, address: made.Listener.Addr().String(), cert: made.TLS.Certificates[0], by: by,
		key: key, CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate().Raw}),
		codes: map[string]*asked{}, renew: map[string]*asked{}}
	made.Close()
	return p, p.Up()
}

// Up has it listen (again).
func (p *Provider) Up() error {
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: p.handler(), ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{p.cert}, MinVersion: tls.VersionTLS12}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = s
	go func() { _ = s.ServeTLS(l, "", "") }() // ends with Down
	return nil
}

// Down has it listen no more.
func (p *Provider) Down() error {
	p.mu.Lock()
	s := p.server
	p.server = nil
	p.mu.Unlock()
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// Transport reaches the provider as one who trusts it.
func (p *Provider) Transport() *http.Transport {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.CA)
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
}

// Sign makes an ID token of claims.
func (p *Provider) Sign(claims map[string]any) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: p.by, Key: jose.JSONWebKey{Key: p.key, KeyID: "k1"}}, nil)
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}

// Behave has it act otherwise from now on.
func (p *Provider) Behave(b Behaviour) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acts = b
}

// Counts are how often something was asked for, and given.
func (p *Provider) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counted
}

// Ends is when the last ID token ends that was given.
func (p *Provider) Ends() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ends
}

func (p *Provider) behaviour() Behaviour {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acts
}

func (p *Provider) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		told := map[string]any{
			"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/auth",
			"token_endpoint": p.URL + "/token", "revocation_endpoint": p.URL + "/revoke",
			"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
			"id_token_signing_alg_values_supported":          []string{string(p.by)},
			"code_challenge_methods_supported":               []string{"S256"},
			"authorization_response_iss_parameter_supported": true}
		acts := p.behaviour()
		if acts.Scopes == nil {
			acts.Scopes = []string{"openid", "email", "offline_access"}
		}
		for name, values := range map[string][]string{"scopes_supported": acts.Scopes,
			"token_endpoint_auth_methods_supported": acts.Methods} {
			if len(values) > 0 {
				told[name] = values
			}
		}
		tell(w, http.StatusOK, told)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		tell(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "k1",
			Algorithm: string(p.by), Use: "sig"}}})
	})
	mux.HandleFunc("GET /auth", p.ask)
	mux.HandleFunc("POST /auth", p.answer)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /revoke", p.revoke)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before := p.behaviour().Before; before != nil {
			before(r)
		}
		mux.ServeHTTP(w, r)
	})
}
