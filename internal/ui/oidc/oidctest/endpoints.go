// SPDX-License-Identifier: Apache-2.0

package oidctest

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
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
	scopes := strings.Fields(q.Get("scope"))
	if !slices.Contains(scopes, "openid") {
		http.Error(w, "the scope has no openid", http.StatusBadRequest)
		return
	}
	if slices.Contains(scopes, "offline_access") != (q.Get("prompt") == "consent") {
		http.Error(w, "offline_access takes prompt=consent", http.StatusBadRequest)
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
	p.codes[code] = &asked{user: r.PostFormValue("user"), back: q.Get("redirect_uri"),
		challenge: q.Get("code_challenge"), nonce: q.Get("nonce")}
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

// client reports whether a request is the client's that the provider knows, which shows its secret in a way that was
// announced.
func client(r *http.Request, methods []string) bool {
	if len(methods) == 0 {
		methods = []string{"client_secret_basic"}
	}
	id, secret, basic := r.BasicAuth()
	way := "client_secret_basic"
	var err, err2 error
	if basic {
		id, err = url.QueryUnescape(id)
		secret, err2 = url.QueryUnescape(secret)
	} else {
		way, id, secret = "client_secret_post", r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	return errors.Join(err, err2) == nil && id == Client && secret == Secret && slices.Contains(methods, way) &&
		basic != r.PostForm.Has("client_secret")
}

// token gives tokens for a code, or for a token to renew by.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // what cannot be read is missing
	acts := p.behaviour()
	if acts.Status != 0 {
		http.Error(w, "<h1>a page</h1>", acts.Status)
		return
	}
	if !client(r, acts.Methods) {
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
		had = &asked{user: cmp.Or(p.acts.Subject, had.user), nonce: had.nonce, again: true}
	default:
		refuse(w, "unsupported_grant_type", "")
		return
	}
	p.give(w, had)
}

// give gives somebody tokens; p.mu is held.
func (p *Provider) give(w http.ResponseWriter, to *asked) {
	life := cmp.Or(p.acts.Life, time.Hour)
	now := time.Now()
	p.ends = now.Add(life)
	id, err := p.Sign(map[string]any{"iss": p.URL, "aud": Client, "sub": to.user,
		"email": to.user + "@example.com", "email_verified": true, "nonce": cmp.Or(p.acts.Nonce, to.nonce),
		"iat": now.Add(min(life, 0)).Add(-time.Second).Unix(), "exp": p.ends.Unix()})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	out := map[string]any{"token_type": "Bearer", "access_token": rand.Text()}
	if !to.again || !p.acts.NoID {
		out["id_token"] = id
	}
	if !p.acts.Forever {
		by := rand.Text()
		p.renew[by] = to
		out["refresh_token"] = by
	}
	tell(w, http.StatusOK, out)
}

// revoke forgets a token to renew by.
func (p *Provider) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // what cannot be read is missing
	if acts := p.behaviour(); acts.Status != 0 {
		http.Error(w, "<h1>a page</h1>", acts.Status)
		return
	} else if !client(r, acts.Methods) {
		refuse(w, "invalid_client", "")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if by := r.PostFormValue("token"); p.renew[by] != nil {
		delete(p.renew, by)
		p.counted.Revoked++
	}
}
