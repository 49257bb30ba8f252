// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/wherryproject/wherry/internal/ui/gate"
	"github.com/wherryproject/wherry/internal/ui/oidc"
)

// maxSignIn bounds the body of a sign-in. The longest tokens, of some identity providers, have a few kilobytes.
const maxSignIn = 64 << 10

// description is what GET /ui/session answers to a browser that is signed in.
type description struct {
	User      string   `json:"user"` // "": it could not be asked for
	Groups    []string `json:"groups"`
	Problem   string   `json:"problem,omitempty"` // why it could not
	SignIn    SignIn   `json:"signIn"`
	Command   Command  `json:"command"`
	Namespace string   `json:"namespace"`
	Version   string   `json:"version"`
}

// session says who is signed in, signs in by a token, and signs out.
func (p *Page) session(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		p.signOn(w, r)
	case http.MethodDelete:
		p.giveBack(r.Context(), p.sessions.remove(p.secret(r)))
		http.SetCookie(w, p.cookie(r, ""))
		w.WriteHeader(http.StatusNoContent)
	default:
		p.describe(w, r)
	}
}

func (p *Page) describe(w http.ResponseWriter, r *http.Request) {
	secret := p.secret(r)
	who, done := p.sessions.begin(secret)
	defer done()
	if who == nil {
		p.askToSignIn(w, p.problemOf(r))
		return
	}
	var about identity
	token, refusal := p.bearer(r.Context(), who)
	ended := ""
	if refusal == nil {
		about, refusal = p.identify(r, token)
	} else if refusal.Code == http.StatusUnauthorized {
		ended = refusal.Message
	}
	if refusal != nil && refusal.Code == http.StatusUnauthorized && p.o.SignIn == ByToken {
		p.end(secret) // the token has come to its end
		p.askToSignIn(w, ended)
		return
	}
	d := description{User: about.user, Groups: append([]string{}, about.groups...), SignIn: p.o.SignIn,
		Command: p.o.Command, Namespace: p.o.Namespace, Version: p.o.Version}
	if refusal != nil { // the session is good all the same: the API may be starting
		d.Problem = refusal.Message
		d.User = who.owner
	}
	writeJSON(w, http.StatusOK, d)
}

// invitation says how to sign in.
type invitation struct {
	SignIn   SignIn `json:"signIn"`
	Provider string `json:"provider,omitempty"` // the identity provider, by the name people know it by
	Problem  string `json:"problem,omitempty"`  // why signing in there did not go well, or came to its end
}

func (p *Page) askToSignIn(w http.ResponseWriter, problem string) {
	in := invitation{SignIn: p.o.SignIn, Problem: problem}
	if p.o.Provider != nil {
		in.Provider = oidc.Name(p.o.Provider.Issuer())
	}
	writeJSON(w, http.StatusUnauthorized, in)
}

// signIn makes a session for whoever comes by a link that nobody has used.
func (p *Page) signIn(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.Header.Get("Sec-Purpose"), "prefetch") {
		writeText(w, http.StatusForbidden, "the link is for a person, and is not used up by a look ahead")
		return
	}
	if p.o.SignIn == ByLink && p.links.use(r.URL.Query().Get("once")) {
		p.end(p.secret(r)) // the browser forgets it in this moment
		http.SetCookie(w, p.cookie(r, p.sessions.add("", "")))
	} else if who, done := p.sessions.begin(p.secret(r)); who == nil {
		writeText(w, http.StatusForbidden, "this link has been used, or is older than five minutes: "+p.howToSignIn())
		return
	} else {
		done() // who is signed in already comes back by an old link
	}
	http.Redirect(w, r, p.first(), http.StatusSeeOther)
}

// first is the view that one comes to.
func (p *Page) first() string {
	if p.o.Namespace == "" {
		return gate.Prefix
	}
	return gate.Prefix + "pods?" + url.Values{"namespace": {p.o.Namespace}}.Encode()
}

func (p *Page) howToSignIn() string {
	if p.o.Provider != nil {
		return "open the page and sign in with a bearer token, or at " + oidc.Name(p.o.Provider.Issuer())
	}
	if p.o.SignIn == ByToken {
		return "open the page and sign in with a bearer token"
	}
	return "open a new link (press Enter where wherry ui runs, or start it again)"
}

// end ends a session that the browser is not going to use again.
func (p *Page) end(secret string) { p.gone([]*session{p.sessions.remove(secret)}) }

// signOn makes a session from a bearer token, once the API has said whose it is.
func (p *Page) signOn(w http.ResponseWriter, r *http.Request) {
	token, err := readToken(w, r)
	if err != nil {
		writeStatus(w, http.StatusBadRequest, "sign in: "+err.Error())
		return
	}
	done, ok := slot(p.checks)
	if !ok {
		w.Header().Set("Retry-After", "1")
		writeStatus(w, http.StatusTooManyRequests, "too many sign-ins at the same time: try again in a moment")
		return
	}
	defer done()
	about, refusal := p.identify(r, token)
	switch {
	case refusal != nil && refusal.Code == http.StatusUnauthorized:
		writeStatus(w, refusal.Code, "the server does not know this token, or it has expired: get a new one")
		return
	case refusal != nil:
		writeStatus(w, refusal.Code, refusal.Message)
		return
	}
	p.end(p.secret(r))
	http.SetCookie(w, p.cookie(r, p.sessions.add(token, about.user)))
	w.WriteHeader(http.StatusNoContent)
}

// slot has one of the few places that there are for something, until done is called.
func slot(places chan struct{}) (done func(), ok bool) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, true
	default:
		return nil, false
	}
}

// readToken reads the body of a sign-in.
func readToken(w http.ResponseWriter, r *http.Request) (string, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return "", errors.New(`want Content-Type: application/json, and {"token": "..."}`)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSignIn))
	if err != nil {
		return "", fmt.Errorf("the body cannot be read: %w", err)
	}
	return tokenIn(body)
}

// tokenIn takes the token out of a body.
func tokenIn(body []byte) (string, error) {
	var in struct{ Token string }
	if json.Unmarshal(body, &in) != nil {
		return "", errors.New(`want {"token": "..."}`) // what the error says may have the token in it
	}
	token := strings.TrimSpace(in.Token)
	odd := func(c rune) bool { return c <= ' ' || c > '~' }
	if token == "" || strings.ContainsFunc(token, odd) {
		return "", errors.New("a bearer token is a word of ASCII characters, without spaces")
	}
	return token, nil
}

func (p *Page) cookieName() string { return fmt.Sprintf("wherry-ui-%d", p.o.Port) }

// secret is that of the session that a browser says it has. One that says it has several, as another server on the
// machine can make it, has none.
func (p *Page) secret(r *http.Request) string {
	if all := r.CookiesNamed(p.cookieName()); len(all) == 1 {
		return all[0].Value
	}
	return ""
}

// cookie holds a session's secret for as long as the browser runs: how long the session lasts is known here. An empty
// secret takes the cookie away.
func (p *Page) cookie(r *http.Request, secret string) *http.Cookie {
	c := &http.Cookie{
		Name: p.cookieName(), Value: secret, Path: gate.Prefix, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || takesSecure(r.UserAgent()),
	}
	if secret == "" {
		c.MaxAge = -1
	}
	return c
}

// takesSecure reports whether a browser takes a secure cookie from loopback without TLS, which is as secure. Safari
// does not: it would stay signed out.
func takesSecure(userAgent string) bool {
	return !strings.Contains(userAgent, "Safari/") || strings.Contains(userAgent, "Chrome/") ||
		strings.Contains(userAgent, "Chromium/")
}
