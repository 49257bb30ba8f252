// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/wherryproject/wherry/internal/ui/oidc"
	"github.com/wherryproject/wherry/internal/ui/oidc/oidctest"
)

// person is a browser before a page at which people sign in at a provider.
type person struct {
	t        *testing.T
	provider *oidctest.Provider
	clock    *clock
	page     *Page
	front    *httptest.Server
	client   *http.Client // follows redirects, and keeps cookies
}

// newPerson has an API that takes the tokens of the provider's that are good at the moment.
func newPerson(t *testing.T, b oidctest.Behaviour) *person {
	t.Helper()
	p, err := oidctest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Down(); err != nil {
			t.Error(err)
		}
	})
	p.Behave(b)
	out := &person{t: t, provider: p, clock: &clock{time.Now()}}
	provider, err := oidc.New(oidc.Options{Issuer: p.URL, ClientID: oidctest.Client, Secret: oidctest.Secret, CA: p.CA,
		Now: out.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	out.page = New(Options{SignIn: ByToken, API: Within(out.api()), Port: 8001, Now: out.clock.now, Provider: provider})
	out.front = httptest.NewServer(out.page)
	t.Cleanup(out.front.Close)
	out.another()
	return out
}

// api says whose a token is, as the Kubernetes API does.
func (p *person) api() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		var c jwt.Claims
		token, err := jwt.ParseSigned(bearer, []jose.SignatureAlgorithm{jose.ES256})
		if err == nil {
			err = token.UnsafeClaimsWithoutVerification(&c)
		}
		if err != nil || !p.clock.now().Before(c.Expiry.Time()) {
			writeStatus(w, http.StatusUnauthorized, "Unauthorized")
			return
		}
		writeJSON(w, http.StatusCreated, map[string]any{"status": map[string]any{"userInfo": map[string]any{"username": c.Subject}}})
	}
}

// another is another browser of the same person's.
func (p *person) another() {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	transport := p.provider.Transport()
	p.t.Cleanup(transport.CloseIdleConnections)
	p.client = &http.Client{Jar: allSites{jar}, Transport: transport}
}

// allSites is a jar that sends secure cookies to loopback, as browsers do.
type allSites struct{ http.CookieJar }

func (a allSites) Cookies(u *url.URL) []*http.Cookie {
	https := *u
	https.Scheme = "https"
	return a.CookieJar.Cookies(&https)
}

// signIn goes the whole way, and returns where it has led.
func (p *person) signIn(user string) *url.URL {
	p.t.Helper()
	resp, err := p.client.Get(p.front.URL + "/ui/oidc/start?to=" + url.QueryEscape("/ui/pods?namespace=shop"))
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.Request.URL.Path == "/ui/" {
		return resp.Request.URL // the provider was not to be had
	}
	if resp.Request.URL.Path != "/auth" || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s", resp.Request.URL, resp.Status)
	}
	resp, err = p.client.PostForm(resp.Request.URL.String(), url.Values{"user": {user}})
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.Request.URL
}

// who asks the page who is signed in.
func (p *person) who() (code int, d description) {
	p.t.Helper()
	resp, err := p.client.Get(p.front.URL + "/ui/session")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&d); err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, d
}

// UI-03: one signs in at the provider, comes to the view that was asked for, and is who the provider says; the browser
// has no token; who signs out is out, at the provider's too.
func TestSignInAtProvider(t *testing.T) {
	p := newPerson(t, oidctest.Behaviour{})
	if code, _ := p.who(); code != http.StatusUnauthorized {
		t.Errorf("before: %d", code)
	}
	if at := p.signIn("jane"); at.Path != "/ui/pods" || at.RawQuery != "namespace=shop" {
		t.Errorf("it leads to %s", at)
	}
	if code, d := p.who(); code != http.StatusOK || d.User != "jane" {
		t.Errorf("%d %+v", code, d)
	}
	base, err := url.Parse(p.front.URL + "/ui/")
	if err != nil {
		t.Fatal(err)
	}
	if all := p.client.Jar.Cookies(base); len(all) != 1 || strings.Contains(all[0].Value, ".") || len(all[0].Value) > 50 {
		t.Errorf("the browser has %v", all)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, p.front.URL+"/ui/session", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Wherry-Page", "1")
	resp, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if code, _ := p.who(); code != http.StatusUnauthorized || p.provider.Counts().Revoked != 1 {
		t.Errorf("after signing out: %d, %+v", code, p.provider.Counts())
	}
}

// UI-03: what is not the answer to this browser's sign-in signs nobody in, and the page says why.
func TestSignInAtProviderFails(t *testing.T) {
	for name, row := range map[string]struct {
		acts oidctest.Behaviour
		says string
	}{
		"refused":              {oidctest.Behaviour{Refuse: "access_denied"}, `the sign-in was refused or called off (access_denied). It says: "<b>Jane</b> said no"`},
		"another state":        {oidctest.Behaviour{State: "x"}, "not that to the last sign-in of this browser (state)"},
		"another nonce":        {oidctest.Behaviour{Nonce: "x"}, "the answer to another sign-in (nonce)"},
		"a code of somebody":   {oidctest.Behaviour{Change: func(string) string { return "x" }}, "has been used, or is too old: sign in again (invalid_grant)"},
		"expired when it came": {oidctest.Behaviour{Life: -time.Minute}, "does not take the ID token"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t, row.acts)
			if at := p.signIn("jane"); at.Path != "/ui/" {
				t.Errorf("it leads to %s", at)
			}
			code, d := p.who()
			if code != http.StatusUnauthorized || !strings.Contains(d.Problem, row.says) {
				t.Errorf("%d %q, want %q", code, d.Problem, row.says)
			}
			p.clock.moves(problemLife)
			if _, d := p.who(); d.Problem != "" {
				t.Errorf("a minute later it still says %q", d.Problem)
			}
		})
	}
}

// UI-03: an answer that came once signs nobody else in: neither in the browser that it came to, nor in another, nor with
// another sign-in's.
func TestAnswerIsForOne(t *testing.T) {
	p := newPerson(t, oidctest.Behaviour{})
	var answers []string
	p.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/ui/oidc/callback" {
			answers = append(answers, r.URL.String())
		}
		return nil
	}
	p.signIn("jane")
	p.another()
	try := func(want string) {
		t.Helper()
		resp, err := p.client.Get(answers[0])
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if code, d := p.who(); code != http.StatusUnauthorized || !strings.Contains(d.Problem, want) {
			t.Errorf("%d %q, want %q", code, d.Problem, want)
		}
	}
	try("no sign-in was begun in this browser")
	resp, err := p.client.Get(p.front.URL + "/ui/oidc/start")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	try("(state)")
	var first string // a code that was given to Jane's first sign-in, in the answer to another one's
	p.provider.Behave(oidctest.Behaviour{Change: func(code string) string {
		if first == "" {
			first = code
			return "never"
		}
		return first
	}})
	p.signIn("jane")
	p.signIn("jill")
	if code, d := p.who(); code != http.StatusUnauthorized || !strings.Contains(d.Problem, "invalid_grant") {
		t.Errorf("with the code of another: %d %q", code, d.Problem)
	}
	if n := p.provider.Counts().Signed; n != 1 {
		t.Errorf("%d sign-ins went well", n)
	}
}

// UI-03: a session is renewed before its token ends; it goes on when the provider is away for a moment, says so when it
// is away for longer, and ends when the provider will not renew it, or renews somebody else.
func TestProviderRenews(t *testing.T) {
	p := newPerson(t, oidctest.Behaviour{})
	p.signIn("jane")
	p.clock.moves(time.Hour - renewBefore + time.Second)
	if code, d := p.who(); code != http.StatusOK || p.provider.Counts().Renewed != 1 {
		t.Errorf("%d %+v, %+v", code, d, p.provider.Counts())
	}
	if err := p.provider.Down(); err != nil {
		t.Fatal(err)
	}
	p.clock.moves(time.Hour) // by its own clock the provider has given tokens that have ended by now
	if code, d := p.who(); code != http.StatusOK || !strings.Contains(d.Problem, "cannot be asked") || d.User != "jane" {
		t.Errorf("while the provider is away: %d %+v", code, d)
	}
	if err := p.provider.Up(); err != nil {
		t.Fatal(err)
	}
	p.provider.Behave(oidctest.Behaviour{Life: 9 * time.Hour})
	if _, d := p.who(); d.Problem == "" {
		t.Error("it was asked again at once")
	}
	p.clock.moves(tryAgain)
	if code, d := p.who(); code != http.StatusOK || d.Problem != "" {
		t.Errorf("when it is there again: %d %+v", code, d)
	}
	p.provider.Behave(oidctest.Behaviour{Refresh: "invalid_grant"})
	p.clock.moves(9*time.Hour - 2*time.Hour)
	if code, d := p.who(); code != http.StatusOK {
		t.Errorf("refused, with a token that is good for some seconds still: %d %+v", code, d)
	}
	p.clock.moves(renewBefore)
	if code, d := p.who(); code != http.StatusUnauthorized || !strings.Contains(d.Problem, "could not be renewed") {
		t.Errorf("when it is refused: %d %+v", code, d)
	}
	if code, d := p.who(); code != http.StatusUnauthorized || d.Problem != "" {
		t.Errorf("after that: %d %+v", code, d)
	}
}

// UI-03: nobody goes on as somebody else, and without a token to renew by a session ends with its token.
func TestProviderEnds(t *testing.T) {
	for name, row := range map[string]struct {
		signs, renews oidctest.Behaviour
		says          string
	}{
		"somebody else":       {oidctest.Behaviour{}, oidctest.Behaviour{Subject: "jill", Life: 3 * time.Hour}, "somebody else's (sub)"},
		"nothing to renew by": {oidctest.Behaviour{Forever: true}, oidctest.Behaviour{}, "has expired: sign in again"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t, row.signs)
			p.signIn("jane")
			p.provider.Behave(row.renews)
			p.clock.moves(time.Hour + time.Second)
			if code, d := p.who(); code != http.StatusUnauthorized || !strings.Contains(d.Problem, row.says) {
				t.Errorf("%d %+v", code, d)
			}
		})
	}
}

// UI-03: a provider that is not there is told in words, and so is a page without one.
func TestProviderIsAway(t *testing.T) {
	p := newPerson(t, oidctest.Behaviour{})
	if err := p.provider.Down(); err != nil {
		t.Fatal(err)
	}
	if at := p.signIn("jane"); at.Path != "/ui/" {
		t.Errorf("it leads to %s", at)
	}
	if code, d := p.who(); code != http.StatusUnauthorized || !strings.Contains(d.Problem, "cannot be asked") {
		t.Errorf("%d %+v", code, d)
	}
	k := newKit(t, ByToken, never(t))
	for _, path := range []string{"/ui/oidc/start", "/ui/oidc/callback?code=x&state=y"} {
		if words := k.text(http.StatusNotFound, k.ask("GET", path, "")); !strings.Contains(words, "--oidc-issuer-url") {
			t.Errorf("%s: %s", path, words)
		}
	}
}

// UI-03: one comes back to the page itself, wherever one was told to.
func TestViewOf(t *testing.T) {
	for to, want := range map[string]string{"": "/ui/", "/ui/pods?namespace=a&filter=b": "/ui/pods?namespace=a&filter=b",
		"//evil.example/ui/": "/ui/", "https://evil.example/ui/": "/ui/", "/ui/../x": "/ui/", "/ui/\\evil": "/ui/",
		"/ui/session": "/ui/", "/ui/oidc/start": "/ui/", "/ui/k8s/api": "/ui/", "/ui/%2e%2e/x": "/ui/", "/uix": "/ui/"} {
		if got := viewOf(to); got != want {
			t.Errorf("%q: %q, want %q", to, got, want)
		}
	}
}

// UI-03: no address leads away.
func FuzzViewOf(f *testing.F) {
	f.Add("/ui/pods?namespace=a")
	f.Add("/ui/%2f/evil")
	f.Fuzz(func(t *testing.T, to string) {
		base := &url.URL{Scheme: "https", Host: "box"}
		at, err := base.Parse(viewOf(to))
		if err != nil || at.Host != "box" || at.Scheme != "https" || !strings.HasPrefix(at.Path, "/ui/") {
			t.Fatalf("%q leads to %v: %v", to, at, err)
		}
	})
}

// UI-03: what a browser keeps of its sign-in it cannot read, change or keep for long; nor is another page's any good.
func TestSealed(t *testing.T) {
	s, now := newSealer(), time.Now()
	sealed := s.seal(kept{State: "s", Verifier: "secret", Until: now.Add(time.Minute)})
	if k := s.open(sealed, now); k == nil || k.State != "s" || k.Verifier != "secret" {
		t.Errorf("%+v", k)
	}
	changed := []byte(sealed)
	changed[len(changed)/2] ^= 1
	for name, k := range map[string]*kept{"old": s.open(sealed, now.Add(time.Minute)), "changed": s.open(string(changed), now),
		"another's": newSealer().open(sealed, now), "none": s.open("", now), "short": s.open("AAAA", now)} {
		if k != nil {
			t.Errorf("%s: %+v", name, k)
		}
	}
}
