// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"net/http"
	"net/url"
	"slices"
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

const tooMany = "too many people sign in at the identity provider at the same time: try again in a moment"

const noProvider = "people do not sign in here at an identity provider: that takes --ui, --oidc-issuer-url and --oidc-client-id"

// leave sends a browser to the identity provider.
func (p *Page) leave(w http.ResponseWriter, r *http.Request) {
	if p.o.Provider == nil {
		writeText(w, http.StatusNotFound, noProvider)
		return
	}
	done, ok := slot(p.asks)
	if !ok {
		p.failed(w, r, tooMany)
		return
	}
	defer done()
	flow, address, err := p.o.Provider.Begin(r.Context(), wayBack(r))
	if err != nil {
		p.failed(w, r, err.Error())
		return
	}
	p.keepFlow(w, r, kept{State: flow.State, Nonce: flow.Nonce, Verifier: flow.Verifier, Session: p.before(r),
		To: viewOf(r.URL.Query().Get("to")), Until: p.o.Now().Add(flowLife)})
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// comeBack makes a session for whoever comes back from the identity provider with what the API takes for a token.
func (p *Page) comeBack(w http.ResponseWriter, r *http.Request) {
	if p.o.Provider == nil {
		writeText(w, http.StatusNotFound, noProvider)
		return
	}
	back := r.URL.Query()
	had := p.flow(r, back.Get("state"))
	switch {
	case had != nil:
	case !slices.ContainsFunc(p.flows(r), func(name string) bool { return p.kept(r, name) != nil }):
		p.failed(w, r,
			"no sign-in was begun in this browser, or it is finished, or older than ten minutes: sign in again")
		return
	default: // which go on: any page can send a browser here
		p.failed(w, r, "the answer that came is not that to a sign-in of this browser (state): sign in again")
		return
	}
	done, ok := slot(p.asks)
	if !ok {
		p.failed(w, r, tooMany)
		return
	}
	defer done()
	p.forget(w, r, p.flowName(had.State), flowPath)
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
	p.endBefore(had.Session)
	http.SetCookie(w, p.cookie(r, p.sessions.put(&session{grant: newGrant(tokens, p.o.Now()), owner: about.user})))
	p.forget(w, r, p.problemName(), gate.Prefix)
	http.Redirect(w, r, viewOf(had.To), http.StatusSeeOther)
}

// wayBack is the address to come back to, as the provider has to know it.
func wayBack(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + r.Host + gate.Prefix + "oidc/callback"
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
