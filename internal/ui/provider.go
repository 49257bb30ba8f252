// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/ui/gate"
	"github.com/wherryproject/wherry/internal/ui/oidc"
)

const (
	// flowLife is how long somebody may take at the identity provider, problemLife how long the page says what came of
	// it.
	flowLife    = 10 * time.Minute
	problemLife = time.Minute
)

const noProvider = "people do not sign in here at an identity provider: that takes --ui, --oidc-issuer-url and --oidc-client-id"

// leave sends a browser to the identity provider.
func (p *Page) leave(w http.ResponseWriter, r *http.Request) {
	if p.o.Provider == nil {
		writeText(w, http.StatusNotFound, noProvider)
		return
	}
	done, ok := p.check()
	if !ok {
		p.failed(w, r, "too many people sign in at the same time: try again in a moment")
		return
	}
	defer done()
	flow, address, err := p.o.Provider.Begin(r.Context(), wayBack(r))
	if err != nil {
		p.failed(w, r, err.Error())
		return
	}
	p.keep(w, r, kept{State: flow.State, Nonce: flow.Nonce, Verifier: flow.Verifier,
		To: viewOf(r.URL.Query().Get("to")), Until: p.o.Now().Add(flowLife)})
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// comeBack makes a session for whoever comes back from the identity provider with what the API takes for a token.
func (p *Page) comeBack(w http.ResponseWriter, r *http.Request) {
	if p.o.Provider == nil {
		writeText(w, http.StatusNotFound, noProvider)
		return
	}
	had, back := p.kept(r), r.URL.Query()
	if had == nil || had.State == "" {
		p.failed(w, r,
			"no sign-in was begun in this browser, or it is finished, or older than ten minutes: sign in again")
		return
	}
	if subtle.ConstantTimeCompare([]byte(had.State), []byte(back.Get("state"))) != 1 {
		p.failed(w, r, "the answer that came is not that to the last sign-in of this browser (state): sign in again")
		return
	}
	done, ok := p.check()
	if !ok {
		p.failed(w, r, "too many people sign in at the same time: try again in a moment")
		return
	}
	defer done()
	tokens, err := p.o.Provider.Redeem(r.Context(), oidc.Flow{State: had.State, Nonce: had.Nonce,
		Verifier: had.Verifier, Back: wayBack(r)}, back)
	if err != nil {
		p.failed(w, r, err.Error())
		return
	}
	about, refusal := p.identify(r, tokens.ID)
	switch {
	case refusal != nil && refusal.Code == http.StatusUnauthorized:
		p.failed(w, r, "the server does not take the ID token of "+oidc.Name(p.o.Provider.Issuer())+
			": its log says why; what it asks of a token the --oidc flags say")
		return
	case refusal != nil:
		p.failed(w, r, refusal.Message)
		return
	}
	p.sessions.remove(p.secret(r))
	http.SetCookie(w, p.cookie(r, p.sessions.put(&session{grant: &grant{tokens: tokens}, owner: about.user})))
	p.keep(w, r, kept{})
	http.Redirect(w, r, had.To, http.StatusSeeOther)
}

// wayBack is the address to come back to, as the provider has to know it.
func wayBack(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + r.Host + gate.Prefix + "oidc/callback"
}

// check has the right to have a token checked, of which there are few, until done is called.
func (p *Page) check() (done func(), ok bool) {
	select {
	case p.checks <- struct{}{}:
		return func() { <-p.checks }, true
	default:
		return nil, false
	}
}

// failed has the page say why a sign-in came to nothing: in the browser that has begun it, for as long as that is news.
func (p *Page) failed(w http.ResponseWriter, r *http.Request, words string) {
	p.keep(w, r, kept{Problem: words, Until: p.o.Now().Add(problemLife)})
	http.Redirect(w, r, gate.Prefix, http.StatusSeeOther)
}

// problemOf is what the browser keeps of a sign-in that came to nothing.
func (p *Page) problemOf(r *http.Request) string {
	if had := p.kept(r); had != nil {
		return had.Problem
	}
	return ""
}

func (p *Page) keptName() string { return p.cookieName() + "-oidc" }

// kept is what a browser keeps of its sign-in; nil: nothing that is of use.
func (p *Page) kept(r *http.Request) *kept {
	if all := r.CookiesNamed(p.keptName()); len(all) == 1 {
		return p.sealer.open(all[0].Value, p.o.Now())
	}
	return nil
}

// keep has the browser keep something of its sign-in, or nothing. The cookie is sent when the provider sends somebody
// back, which one that is strictly of this site is not.
func (p *Page) keep(w http.ResponseWriter, r *http.Request, k kept) {
	c := p.cookie(r, p.sealer.seal(k))
	c.Name, c.SameSite = p.keptName(), http.SameSiteLaxMode
	if k == (kept{}) {
		c.Value, c.MaxAge = "", -1
	}
	http.SetCookie(w, c)
}

// viewOf is the view to come to: a path of the page's own, or its beginning.
func viewOf(to string) string {
	u, err := url.Parse(to)
	odd := func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' }
	if err != nil || strings.ContainsFunc(to, odd) || !strings.HasPrefix(to, gate.Prefix) || len(to) > 1000 ||
		u.Scheme != "" || u.Host != "" || gate.Route(u.Path) != gate.Document || strings.Contains(u.Path, "..") {
		return gate.Prefix
	}
	return to
}
