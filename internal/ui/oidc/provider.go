// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

const (
	// patience is how long a provider may take for one answer, most how long that may be.
	patience = 10 * time.Second
	most     = 1 << 20
	// documentLife is how long a provider's document is taken for true.
	documentLife = 10 * time.Minute
)

// Options are where a provider is, and what it knows the page as.
type Options struct {
	Issuer   string
	ClientID string
	Secret   string   // "": the client is a public one
	Scopes   []string // to ask for, beside openid; none: by what the provider says that it has
	CA       []byte   // PEM; none: the system's
	Now      func() time.Time
}

// Provider is an OpenID Connect provider.
type Provider struct {
	o      Options
	client *http.Client

	mu   sync.Mutex
	told document
	at   time.Time // when it was told; zero: not yet
}

// New makes a provider; it is not asked anything yet.
func New(o Options) (*Provider, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(o.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, fmt.Errorf("OpenID Connect provider %s: the CA has no certificate in PEM form", o.Issuer)
		}
	}
	// No connection is kept: people sign in seldom, and nothing is to be left when they have.
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, DisableKeepAlives: true}
	return &Provider{o: o, client: &http.Client{Transport: bounded{transport}, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// bounded bounds answers.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, most), resp.Body}
	}
	return resp, err
}

// Issuer is the URL by which it is known.
func (p *Provider) Issuer() string { return p.o.Issuer }

// Flow is one sign-in: what was sent along with a browser, and must come back with it.
type Flow struct {
	State, Nonce, Verifier string
	Back                   string // the address to come back to, as the provider was told
}

// Tokens are what somebody who has signed in has.
type Tokens struct {
	ID      string // the ID token, a bearer token of the Kubernetes API; "": a renewal has brought none
	Refresh string // gets the next one; "": there is none
	Subject string
	Nonce   string    // of the sign-in
	Expires time.Time // when ID does
}

// Begin begins a sign-in that comes back to an address, and says where to send the browser.
func (p *Provider) Begin(ctx context.Context, back string) (Flow, string, error) {
	config, _, err := p.config(ctx, back)
	if err != nil {
		return Flow{}, "", problemOf(p.o.Issuer, err)
	}
	f := Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Back: back}
	with := []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("nonce", f.Nonce), oauth2.S256ChallengeOption(f.Verifier)}
	if slices.Contains(config.Scopes, "offline_access") { // which else is to be ignored (OpenID Connect Core 1.0, 11)
		with = append(with, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	return f, config.AuthCodeURL(f.State, with...), nil
}

// Redeem gets tokens for what a browser came back with. The ID token is judged by whoever it is shown to.
func (p *Provider) Redeem(ctx context.Context, f Flow, back url.Values) (Tokens, error) {
	out, err := p.redeem(ctx, f, back)
	if err != nil {
		return Tokens{}, problemOf(p.o.Issuer, err)
	}
	return out, nil
}

func (p *Provider) redeem(ctx context.Context, f Flow, back url.Values) (Tokens, error) {
	_, about, err := p.config(ctx, f.Back)
	if err != nil {
		return Tokens{}, err
	}
	if iss := back.Get("iss"); iss != p.o.Issuer && (iss != "" || about.ByIssuer) {
		return Tokens{}, &Problem{true, "the answer is of another identity provider than was asked"}
	}
	if code := back.Get("error"); code != "" {
		return Tokens{}, Answered(p.o.Issuer, code, back.Get("error_description"))
	}
	token, err := p.post(ctx, about, about.Token, url.Values{"grant_type": {"authorization_code"},
		"code": {back.Get("code")}, "redirect_uri": {f.Back}, "code_verifier": {f.Verifier}})
	if err != nil {
		return Tokens{}, err
	}
	tokens, err := tokensOf(token)
	if err == nil && tokens.Nonce != f.Nonce {
		err = errors.New("its ID token is the answer to another sign-in (nonce)")
	}
	return tokens, p.odd(err)
}

// Renew gets the next tokens of somebody. A provider may renew without a new ID token: then there is none in them, and
// the one before is good until its end.
func (p *Provider) Renew(ctx context.Context, had Tokens) (Tokens, error) {
	out, err := p.renew(ctx, had)
	if err != nil {
		return Tokens{}, problemOf(p.o.Issuer, err)
	}
	return out, nil
}

func (p *Provider) renew(ctx context.Context, had Tokens) (Tokens, error) {
	_, about, err := p.config(ctx, "")
	if err != nil {
		return Tokens{}, err
	}
	token, err := p.post(ctx, about, about.Token,
		url.Values{"grant_type": {"refresh_token"}, "refresh_token": {had.Refresh}})
	if err != nil {
		return Tokens{}, err
	}
	next := Tokens{Refresh: cmp.Or(token.Refresh, had.Refresh), Subject: had.Subject, Nonce: had.Nonce}
	if token.ID == "" {
		return next, nil
	}
	c, err := claimsOf(token.ID)
	switch {
	case err != nil:
		return Tokens{}, p.odd(err)
	case c.Subject != had.Subject:
		return Tokens{}, p.another("its next ID token is somebody else's (sub)")
	case c.Nonce != "" && c.Nonce != had.Nonce:
		return Tokens{}, p.another("its next ID token is the answer to another sign-in (nonce)")
	}
	next.ID, next.Expires = token.ID, c.Expires
	return next, nil
}

// odd is what is told of an answer that is not as it should be.
func (p *Provider) odd(err error) error {
	if err == nil {
		return nil
	}
	return &Problem{Words: Name(p.o.Issuer) + " answers oddly: " + err.Error()}
}

// another is what is told of an answer that is not for whoever asked: nothing is to be had by asking again.
func (p *Provider) another(words string) error {
	return &Problem{Refused: true, Words: Name(p.o.Issuer) + " answers oddly: " + words}
}

// tokensOf are the tokens that a code brings.
func tokensOf(a answer) (Tokens, error) {
	if a.ID == "" {
		return Tokens{}, errors.New("there is no ID token in it")
	}
	c, err := claimsOf(a.ID)
	return Tokens{ID: a.ID, Refresh: a.Refresh, Subject: c.Subject, Nonce: c.Nonce, Expires: c.Expires}, err
}

// Revoke tells the provider that a token to renew by is needed no more, if it wants to know that.
func (p *Provider) Revoke(ctx context.Context, had Tokens) error {
	_, about, err := p.config(ctx, "")
	if err == nil && about.Revocation != "" && had.Refresh != "" {
		_, err = p.post(ctx, about, about.Revocation,
			url.Values{"token": {had.Refresh}, "token_type_hint": {"refresh_token"}})
	}
	if err != nil {
		return problemOf(p.o.Issuer, err)
	}
	return nil
}

// config is what addresses to send browsers to are made by, and what the provider told of itself within the last ten
// minutes.
func (p *Provider) config(ctx context.Context, back string) (*oauth2.Config, document, error) {
	about, err := p.about(ctx)
	return &oauth2.Config{ClientID: p.o.ClientID, RedirectURL: back, Scopes: about.scopes(p.o.Scopes),
		Endpoint: oauth2.Endpoint{AuthURL: about.Authorize}}, about, err
}

func (p *Provider) about(ctx context.Context) (document, error) {
	p.mu.Lock()
	told, at := p.told, p.at
	p.mu.Unlock()
	if !at.IsZero() && p.o.Now().Sub(at) < documentLife {
		return told, nil
	}
	told, err := p.ask(ctx)
	if err != nil {
		return told, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told, p.at = told, p.o.Now()
	return told, nil
}

// ask asks the provider what it tells of itself.
func (p *Provider) ask(ctx context.Context) (document, error) {
	address := strings.TrimSuffix(p.o.Issuer, "/") + "/.well-known/openid-configuration"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return document{}, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return document{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return document{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return document{}, fmt.Errorf("%s answers %s", address, resp.Status)
	}
	d, err := documentOf(body, p.o.Issuer)
	return d, p.odd(err)
}
