// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/ui/gate"
)

const (
	// mostFlows is how many sign-ins may go on in one browser, in several tabs: the one that was begun first goes.
	mostFlows = 4
	// mostCookie bounds a cookie's name and value: browsers take 4 KB of both, and drop one that has more.
	mostCookie = 4000
	// flowPath is that of the cookies of sign-ins, which nothing else need get.
	flowPath = gate.Prefix + "oidc/"
)

// problemName is the name of the cookie that says why a sign-in came to nothing.
func (p *Page) problemName() string { return p.cookieName() + "-oidc" }

// flowName is that of the cookie of a sign-in that goes on. Each has its own, so that an answer that fits none, which
// anybody can send a browser with, ends none.
func (p *Page) flowName(state string) string {
	hash := hashOf(state)
	return p.problemName() + "-" + hex.EncodeToString(hash[:8])
}

// failed has the page say why a sign-in came to nothing: in the browser that has begun it, for as long as that is news.
func (p *Page) failed(w http.ResponseWriter, r *http.Request, words string) {
	p.keep(w, r, p.problemName(), gate.Prefix, kept{Problem: words, Until: p.o.Now().Add(problemLife)})
	http.Redirect(w, r, gate.Prefix, http.StatusSeeOther)
}

// problemOf is what the browser keeps of a sign-in that came to nothing.
func (p *Page) problemOf(r *http.Request) string {
	if had := p.kept(r, p.problemName()); had != nil {
		return had.Problem
	}
	return ""
}

// flow is the sign-in of this browser that has a state; nil: there is none.
func (p *Page) flow(r *http.Request, state string) *kept {
	had := p.kept(r, p.flowName(state))
	if had == nil || subtle.ConstantTimeCompare([]byte(had.State), []byte(state)) != 1 {
		return nil
	}
	return had
}

// flows are the names of the cookies of sign-ins that go on in a browser, by when they were begun; those that are of no
// use come first.
func (p *Page) flows(r *http.Request) []string {
	until := map[string]time.Time{}
	var out []string
	for _, c := range r.Cookies() {
		if strings.HasPrefix(c.Name, p.problemName()+"-") && !slices.Contains(out, c.Name) {
			out = append(out, c.Name)
			if had := p.kept(r, c.Name); had != nil {
				until[c.Name] = had.Until
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(until[a].Compare(until[b]), cmp.Compare(a, b)) })
	return out
}

// keepFlow has the browser keep a sign-in, and forget the first of too many.
func (p *Page) keepFlow(w http.ResponseWriter, r *http.Request, k kept) {
	had := p.flows(r)
	for _, name := range had[:max(0, len(had)-mostFlows+1)] {
		p.forget(w, r, name, flowPath)
	}
	p.keep(w, r, p.flowName(k.State), flowPath, k)
}

// before is what a sign-in keeps of the session that the browser has: its cookie is strictly of this site, and not sent
// when somebody comes back from the provider.
func (p *Page) before(r *http.Request) string {
	secret := p.secret(r)
	if secret == "" {
		return ""
	}
	hash := hashOf(secret)
	return hex.EncodeToString(hash[:])
}

// endBefore ends that session, whose cookie is replaced.
func (p *Page) endBefore(hashed string) {
	var key secretHash
	if n, err := hex.Decode(key[:], []byte(hashed[:min(len(hashed), 2*len(key))])); err == nil && n == len(key) {
		p.gone([]*session{p.sessions.removeBy(key)})
	}
}

// kept is what a browser keeps by a name; nil: nothing that is of use.
func (p *Page) kept(r *http.Request, name string) *kept {
	if all := r.CookiesNamed(name); len(all) == 1 {
		return p.sealer.open(all[0].Value, p.o.Now())
	}
	return nil
}

// keep has the browser keep something of its sign-in. The cookie is sent when the provider sends somebody back, which
// one that is strictly of this site is not.
func (p *Page) keep(w http.ResponseWriter, r *http.Request, name, path string, k kept) {
	c := p.cookie(r, p.sealer.fit(k, mostCookie-len(name)))
	c.Name, c.Path, c.SameSite = name, path, http.SameSiteLaxMode
	c.MaxAge = int(k.Until.Sub(p.o.Now()) / time.Second)
	http.SetCookie(w, c)
}

// forget has it keep that no more.
func (p *Page) forget(w http.ResponseWriter, r *http.Request, name, path string) {
	c := p.cookie(r, "")
	c.Name, c.Path, c.SameSite = name, path, http.SameSiteLaxMode
	http.SetCookie(w, c)
}
