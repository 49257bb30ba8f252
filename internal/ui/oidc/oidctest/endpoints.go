// SPDX-License-Identifier: Apache-2.0

package oidctest

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

func tell(w http.ResponseWriter, code int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(what) // whoever asked is gone
}

// refuse answers as RFC 6749 has it.
func refuse(w http.ResponseWriter, code, description string) {
	tell(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": description})
}

const signIn = `<!doctype html><title>Provider</title><form method="post" action="/auth?{{.}}">
<label>Name <input name="user" id="user" autofocus></label> <button>Continue</button></form>`

// ask is the page at which people sign in.
func (p *Provider) ask(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name, want := range map[string]string{"response_type": "code", "client_id": Client,
		"code_challenge_method": "S256"} {
		if q.Get(name) != want {
			http.Error(w, name+" is not "+want, http.StatusBadRequest)
			return
		}
	}
	for _, name := range []string{"state", "nonce", "code_challenge", "redirect_uri"} {
		if q.Get(name) == "" {
			http.Error(w, name+" is missing", http.StatusBadRequest)
			return
		}
	}
	if !strings.Contains(" "+q.Get("scope")+" ", " openid ") {
		http.Error(w, "the scope has no openid", http.StatusBadRequest)
		return
	}
	page, err := template.New("").Parse(signIn)
	if err == nil {
		err = page.Execute(w, template.URL(r.URL.RawQuery))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// answer sends somebody back, with a code.
func (p *Provider) answer(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	acts := p.acts
	code := rand.Text()
	p.codes[code] = &asked{r.PostFormValue("user"), q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("nonce")}
	p.mu.Unlock()
	out := url.Values{"state": {cmp.Or(acts.State, q.Get("state"))}, "iss": {p.URL}}
	if acts.Change != nil {
		code = acts.Change(code)
	}
	if acts.Refuse != "" {
		out.Set("error", acts.Refuse)
		out.Set("error_description", "<b>Jane</b> said no")
	} else {
		out.Set("code", code)
	}
	back.RawQuery = out.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

// token gives tokens for a code, or for a token to renew by.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != Client || secret != Secret {
		refuse(w, "invalid_client", "")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var had *asked
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		code := r.PostFormValue("code")
		had = p.codes[code]
		delete(p.codes, code)
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if had == nil || had.back != r.PostFormValue("redirect_uri") ||
			had.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
			refuse(w, "invalid_grant", "no such code")
			return
		}
		p.counted.Signed++
	case "refresh_token":
		by := r.PostFormValue("refresh_token")
		had = p.renew[by]
		delete(p.renew, by)
		if p.acts.Refresh != "" || had == nil {
			refuse(w, cmp.Or(p.acts.Refresh, "invalid_grant"), "")
			return
		}
		p.counted.Renewed++
		had = &asked{user: cmp.Or(p.acts.Subject, had.user), nonce: had.nonce}
	default:
		refuse(w, "unsupported_grant_type", "")
		return
	}
	p.give(w, had)
}

// give gives somebody tokens; p.mu is held.
func (p *Provider) give(w http.ResponseWriter, to *asked) {
	life := cmp.Or(p.acts.Life, time.Hour)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.key, KeyID: "k1"}},
		nil)
	var id string
	if err == nil {
		now := time.Now()
		id, err = jwt.Signed(signer).Claims(map[string]any{"iss": p.URL, "aud": Client, "sub": to.user,
			"email": to.user + "@example.com", "email_verified": true, "nonce": cmp.Or(p.acts.Nonce, to.nonce),
			"iat": now.Add(min(life, 0)).Add(-time.Second).Unix(), "exp": now.Add(life).Unix()}).Serialize()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	out := map[string]any{"token_type": "Bearer", "access_token": rand.Text(), "id_token": id}
	if !p.acts.Forever {
		by := rand.Text()
		p.renew[by] = to
		out["refresh_token"] = by
	}
	tell(w, http.StatusOK, out)
}

// revoke forgets a token to renew by.
func (p *Provider) revoke(_ http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if by := r.PostFormValue("token"); p.renew[by] != nil {
		delete(p.renew, by)
		p.counted.Revoked++
	}
}
