// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
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
	log      *logged
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
	out := &person{t: t, provider: p, clock: &clock{time.Now()}, log: &logged{}}
	provider, err := oidc.New(oidc.Options{Issuer: p.URL, ClientID: oidctest.Client, Secret: oidctest.Secret, CA: p.CA,
		Now: out.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	out.page = New(Options{SignIn: ByToken, API: Within(out.api()), Port: 8001, Now: out.clock.now, Provider: provider,
		Log: slog.New(slog.NewTextHandler(out.log, nil))})
	out.front = httptest.NewServer(out.page)
	t.Cleanup(out.front.Close)
	out.another()
	return out
}

// logged is what was logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// api says whose a token is, as the Kubernetes API does. One is the administrator's, of no provider.
func (p *person) api() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if bearer == "admin-token" {
			writeJSON(w, http.StatusCreated, map[string]any{"status": map[string]any{"userInfo": map[string]any{"username": "admin"}}})
			return
		}
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

// allSites is a jar that sends secure cookies to loopback, and none that is strictly of its site when one is sent back
// from another, as browsers do.
type allSites struct{ http.CookieJar }

func (a allSites) Cookies(u *url.URL) []*http.Cookie {
	https := *u
	https.Scheme = "https"
	all := a.CookieJar.Cookies(&https)
	if u.Path == "/ui/oidc/callback" {
		all = slices.DeleteFunc(all, func(c *http.Cookie) bool { return c.Name == "wherry-ui-8001" })
	}
	return all
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

// signOut signs out.
func (p *person) signOut() {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodDelete, p.front.URL+"/ui/session", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("X-Wherry-Page", "1")
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
}

// cookies are those that the browser sends to a path.
func (p *person) cookies(path string) []*http.Cookie {
	p.t.Helper()
	at, err := url.Parse(p.front.URL + path)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.client.Jar.Cookies(at)
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
	if all := p.cookies("/ui/oidc/start"); len(all) != 1 || strings.Contains(all[0].Value, ".") || len(all[0].Value) > 50 {
		t.Errorf("the browser has %v", all)
	}
	p.signOut()
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
		"another state":        {oidctest.Behaviour{State: "x"}, "not that to a sign-in of this browser (state)"},
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
	had := p.cookies("/ui/")
	resp, err := p.client.Get(answers[0]) // in the browser that it came to
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	now := p.cookies("/ui/")
	if code, d := p.who(); code != http.StatusOK || d.User != "jane" || len(now) != 2 ||
		!slices.ContainsFunc(now, func(c *http.Cookie) bool { return c.Name == had[0].Name && c.Value == had[0].Value }) {
		t.Errorf("by the same answer again: %d %+v, with %v; before with %v", code, d, now, had)
	}
	p.signOut()
	if _, d := p.who(); !strings.Contains(d.Problem, "no sign-in was begun in this browser") {
		t.Errorf("by the same answer again: %q", d.Problem)
	}
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
	if resp, err = p.client.Get(p.front.URL + "/ui/oidc/start"); err != nil {
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
