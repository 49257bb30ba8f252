// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/wherryproject/wherry/internal/ui/oidc/oidctest"
	"github.com/wherryproject/wherry/test/e2e"
)

// provider starts an OpenID Connect provider, and a server that knows people by it.
func provider(t *testing.T) (*oidctest.Provider, *e2e.Space) {
	t.Helper()
	if run.skip != "" {
		t.Skip(run.skip)
	}
	p, err := oidctest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Down(); err != nil {
			t.Error(err)
		}
	})
	ca, secret := filepath.Join(t.TempDir(), "ca.crt"), filepath.Join(t.TempDir(), "secret")
	for file, text := range map[string]string{ca: string(p.CA), secret: oidctest.Secret + "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	srv := own(t, "--ui", "--oidc-issuer-url", p.URL, "--oidc-client-id", oidctest.Client, "--oidc-username-claim", "email",
		"--oidc-ca-file", ca, "--oidc-signing-algs", "ES256", "--ui-oidc-client-secret-file", secret)
	s := srv.Space(t)
	s.Kubectl("create", "rolebinding", "lookers", "--clusterrole", "view", "--user", "jane@example.com")
	return p, s
}

// at opens a view of the page, goes from there to the provider, signs in, and comes back to what there says. Where
// Chromium has cut that off, as networkChanged has it, it is done anew, five times at most; how often, it returns: the
// server may have made a session of which the browser knows nothing.
func (tab *Tab) at(view, user, there string) (tries int) {
	tab.T.Helper()
	const (
		lost  = `(location.protocol === "chrome-error:" && document.body?.innerText.includes("` + networkChanged + `"))`
		offer = "Sign in at 127.0.0.1"
	)
	for tries = range 5 {
		tab.Go(view)
		tab.Until("offer to sign in", shown(offer)+" || "+there)
		if tries > 0 && Get[bool](tab, there) {
			return tries
		}
		tab.Click(offer)
		tab.Until("be at the provider", lost+` || document.title === "Provider"`)
		if Get[bool](tab, lost) {
			continue
		}
		tab.ClickOn(`document.querySelector("#user")`)
		tab.Keys(user + "\r")
		tab.Until("be back", lost+" || "+there)
		if !Get[bool](tab, lost) {
			return tries + 1
		}
	}
	tab.T.Fatal("Chromium has cut off five sign-ins")
	return 0
}

// shown is an expression of a page that shows a text.
func shown(text string) string {
	return fmt.Sprintf(`document.body?.innerText.includes(%q)`, text)
}

// UI-02 UI-03: one signs in at the server's OpenID Connect provider, comes back to the view that one wanted, and is who
// the provider says, with that one's rights; the browser has no token; who signs out is asked again.
func TestSignInAtProvider(t *testing.T) {
	p, s := provider(t)
	s.Create(e2e.NewPod("web", e2e.Sh("echo hello; "+e2e.Idle)))
	s.WaitReady("web")
	tab := newTab(t)
	tab.Expect("status of 40[13]|closed before the connection is established|HTTP Authentication failed|favicon")
	tries := tab.at(s.Config.Host+"/ui/pods?namespace="+s.Namespace, "jane", shown("jane@example.com"))
	tab.Sees("web")
	if at := Get[string](tab, `location.pathname + location.search`); at != "/ui/pods?namespace="+s.Namespace {
		t.Errorf("one comes back to %s", at)
	}
	if kept := Get[string](tab,
		`document.cookie + " " + JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + location.hash`); kept[0] != ' ' || strings.Contains(kept, "eyJ") { // as every JSON web token begins
		t.Errorf("a script of the page can see %s", kept)
	}
	tab.View("pod/logs", s, "web")
	tab.Sees("hello")
	tab.Click("Sign out")
	tab.Sees("Sign in at 127.0.0.1")
	if n := p.Counts(); n.Signed < 1 || n.Signed > tries || n.Revoked < 1 || n.Revoked > n.Signed {
		t.Errorf("the provider has counted %+v after %d tries", n, tries)
	}
}

// UI-03: what went wrong at the provider is told in words, and signs nobody in: a refusal, another state, another
// nonce, a code that was used, a token that has ended, and no provider at all.
func TestSignInAtProviderFails(t *testing.T) {
	p, s := provider(t)
	tab := newTab(t)
	tab.Expect("status of 401|favicon")
	var mu sync.Mutex
	var answer string // the last one that the provider sent back
	if err := chromedp.Listen(tab.ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok && strings.Contains(e.Request.URL, "/ui/oidc/callback?") {
			mu.Lock()
			defer mu.Unlock()
			answer = e.Request.URL
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		acts oidctest.Behaviour
		says string
	}{
		{oidctest.Behaviour{Refuse: "access_denied"}, `the sign-in was refused or called off (access_denied). It says: "<b>Jane</b> said no"`},
		{oidctest.Behaviour{State: "another"}, "not that to a sign-in of this browser (state)"},
		{oidctest.Behaviour{Nonce: "another"}, "the answer to another sign-in (nonce)"},
		{oidctest.Behaviour{Change: func(string) string { return "used" }}, "has been used, or is too old: sign in again (invalid_grant)"},
		{oidctest.Behaviour{Life: -time.Minute}, "the server does not take the ID token of 127.0.0.1"},
	} {
		p.Behave(row.acts)
		tab.at(s.Config.Host+"/ui/", "jane", fmt.Sprintf(`document.querySelector("[role=alert]")?.innerText.includes(%q)`, row.says))
	}
	p.Behave(oidctest.Behaviour{})
	mu.Lock()
	last := answer
	mu.Unlock()
	tab.Go(last) // an answer that came before, to a sign-in other than the one that another state has left unanswered
	tab.Until("not take it twice", `document.querySelector("[role=alert]")?.innerText.includes("not that to a sign-in of this browser (state)")`)
	if err := p.Down(); err != nil {
		t.Fatal(err)
	}
	// What a provider tells of itself is remembered for some minutes: then it is the browser that cannot reach it, or
	// the server that cannot ask for the token.
	tab.Click("Sign in at 127.0.0.1")
	tab.Until("be nowhere", `location.protocol === "chrome-error:"`)
	if err := p.Up(); err != nil {
		t.Fatal(err)
	}
	tab.at(s.Config.Host+"/ui/", "jane", shown("jane@example.com"))
}

// UI-03 UI-05: a session is renewed under an open page; when the provider renews it no more, it ends with its token, and
// the page says why.
func TestProviderRenews(t *testing.T) {
	p, s := provider(t)
	const life = 10 * time.Second
	p.Behave(oidctest.Behaviour{Life: life})
	tab := newTab(t)
	tab.Expect("status of 40[13]|closed before the connection is established|HTTP Authentication failed|favicon")
	tries := tab.at(s.Config.Host+"/ui/pods?namespace="+s.Namespace, "jane", shown("jane@example.com"))
	tab.Sees("There are no pods here.")
	<-time.After(time.Until(p.Ends().Add(-life / 5))) // the last quarter is known by the clock alone
	tab.Go("/ui/services?namespace=" + s.Namespace)
	tab.Sees("There are no services here.")
	if n := p.Counts(); n.Signed > tries || n.Renewed == 0 {
		t.Errorf("the provider has counted %+v after %d tries", n, tries)
	}
	p.Behave(oidctest.Behaviour{Refresh: "invalid_grant"})
	<-time.After(time.Until(p.Ends()))
	tab.Go("/ui/pods?namespace=" + s.Namespace)
	tab.Sees("Sign in at 127.0.0.1", "your sign-in could not be renewed")
}
