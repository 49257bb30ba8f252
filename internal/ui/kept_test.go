// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/ui/oidc/oidctest"
)

// begins begins a sign-in, and returns the provider's page that it leads to.
func (p *person) begins() string {
	p.t.Helper()
	resp, err := p.client.Get(p.front.URL + "/ui/oidc/start")
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.Request.URL.Path != "/auth" {
		p.t.Fatalf("it leads to %s", resp.Request.URL)
	}
	return resp.Request.URL.String()
}

// finishes signs in there.
func (p *person) finishes(at, user string) {
	p.t.Helper()
	resp, err := p.client.PostForm(at, url.Values{"user": {user}})
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
}

// UI-03: sign-ins in several tabs do not disturb each other, and no page can end one by sending the browser back.
func TestTwoTabs(t *testing.T) {
	p := newPerson(t, oidctest.Behaviour{})
	first, second := p.begins(), p.begins()
	for _, lure := range []string{"?state=x&code=y", "?error=access_denied", "",
		"?state=" + strings.Repeat("x", 5000)} {
		resp, err := p.client.Get(p.front.URL + "/ui/oidc/callback" + lure)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if _, d := p.who(); !strings.Contains(d.Problem, "(state)") {
			t.Errorf("%.20s: %q", lure, d.Problem)
		}
	}
	for user, at := range map[string]string{"jane": second, "jill": first} {
		p.finishes(at, user)
		if code, d := p.who(); code != http.StatusOK || d.User != user {
			t.Errorf("%s: %d %+v", user, code, d)
		}
	}
	if all := p.cookies("/ui/oidc/start"); len(all) != 1 {
		t.Errorf("the browser has %v", all)
	}
	p.signOut()
	p.another()
	oldest := p.begins()
	var last string
	for range 2 * mostFlows {
		p.clock.moves(time.Second)
		last = p.begins()
	}
	if all := p.cookies("/ui/oidc/start"); len(all) != mostFlows {
		t.Errorf("%d sign-ins go on in one browser, want %d", len(all), mostFlows)
	}
	p.finishes(oldest, "jane")
	if _, d := p.who(); !strings.Contains(d.Problem, "(state)") {
		t.Errorf("the first of too many: %q", d.Problem)
	}
	p.finishes(last, "jane")
	if code, d := p.who(); code != http.StatusOK || d.User != "jane" {
		t.Errorf("the last: %d %+v", code, d)
	}
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
	for name, k := range map[string]*kept{"old": s.open(sealed, now.Add(time.Minute)),
		"changed": s.open(string(changed), now), "another's": newSealer().open(sealed, now), "none": s.open("", now),
		"short": s.open("AAAA", now)} {
		if k != nil {
			t.Errorf("%s: %+v", name, k)
		}
	}
}

// UI-03: whatever a provider says, and however long the address is that somebody wants, it fits into a cookie.
func TestSealedFits(t *testing.T) {
	s, now := newSealer(), time.Now()
	for _, letter := range []string{"<", "x", "ä", "𝒳", "\x00", "\xff"} {
		for _, n := range []int{0, 10, 1000, 100_000} {
			k := kept{State: "s", Nonce: "n", To: strings.Repeat("&", 1000),
				Problem: "why: " + strings.Repeat(letter, n), Until: now.Add(time.Minute)}
			sealed := s.fit(k, 3000)
			got := s.open(sealed, now)
			if len(sealed) > 3000 || got == nil || got.State != "s" || got.Nonce != "n" ||
				!strings.HasPrefix(got.Problem, "why: ") {
				t.Errorf("%d of %q: %d bytes: %+v", n, letter, len(sealed), got)
			}
			if n <= 10 && strings.HasSuffix(got.Problem, "…") {
				t.Errorf("%d of %q: cut to %q", n, letter, got.Problem)
			}
		}
	}
}

// UI-03: the reason is told, however long it is: browsers drop a cookie of more than 4 KB.
func TestLongProblem(t *testing.T) {
	page := New(Options{SignIn: ByToken, Port: 8001})
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/ui/oidc/callback", http.NoBody)
	page.failed(w, r, "it says: "+strings.Repeat("<𝒳>", 5000))
	all := w.Result().Cookies()
	if len(all) != 1 || len(all[0].Name)+len(all[0].Value) > 4096 {
		t.Fatalf("the browser gets %v", all)
	}
	r.AddCookie(all[0])
	if words := page.problemOf(r); !strings.HasPrefix(words, "it says: <𝒳>") || !strings.HasSuffix(words, " …") {
		t.Errorf("it is told %q", words)
	}
}
