// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/ui/gate"
	"github.com/wherryproject/wherry/internal/ui/oidc/oidctest"
)

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
	if code, d := p.who(); code != http.StatusOK || !strings.Contains(d.Problem, "cannot be asked") ||
		d.User != "jane" {
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
		"another sign-in": {oidctest.Behaviour{}, oidctest.Behaviour{Nonce: "x", Life: 3 * time.Hour},
			"another sign-in (nonce)"},
		"no ID token": {oidctest.Behaviour{}, oidctest.Behaviour{NoID: true},
			"renews it without a new ID token"},
		"somebody else": {oidctest.Behaviour{}, oidctest.Behaviour{Subject: "jill", Life: 3 * time.Hour},
			"somebody else's (sub)"},
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

// UI-03: a token is renewed in its last minute, or the last quarter of a life that is short, and not at every request.
func TestNeeds(t *testing.T) {
	came := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		life, after time.Duration
		want        bool
	}{
		{time.Hour, 0, false}, {time.Hour, time.Hour - time.Minute, false},
		{time.Hour, time.Hour - time.Minute + 1, true},
		{time.Hour, 2 * time.Hour, true}, {time.Minute, 0, false}, {time.Minute, 45 * time.Second, false},
		{time.Minute, 45*time.Second + 1, true}, {20 * time.Second, 14 * time.Second, false},
		{20 * time.Second, 16 * time.Second, true},
	} {
		if got := needs(came, came.Add(row.life), came.Add(row.after)); got != row.want {
			t.Errorf("%s of %s: %t", row.after, row.life, got)
		}
	}
}

// UI-03: a token that lives for a minute is not renewed before its last quarter.
func TestShortTokens(t *testing.T) {
	p := newPerson(t, oidctest.Behaviour{Life: time.Minute})
	p.signIn("jane")
	for range 3 {
		p.who()
	}
	if n := p.provider.Counts().Renewed; n != 0 {
		t.Errorf("renewed %d times at once", n)
	}
	p.clock.moves(46 * time.Second)
	if code, _ := p.who(); code != http.StatusOK || p.provider.Counts().Renewed != 1 {
		t.Errorf("in the last quarter: %d, %+v", code, p.provider.Counts())
	}
}

// UI-03: however a provider wants its clients to show their secret, it is asked so for tokens, renewals and revocation.
func TestSecretIsShown(t *testing.T) {
	for _, methods := range [][]string{nil, {"client_secret_basic"}, {"client_secret_post"},
		{"client_secret_post", "client_secret_basic"}} {
		t.Run(strings.Join(methods, " "), func(t *testing.T) {
			p := newPerson(t, oidctest.Behaviour{Methods: methods})
			p.signIn("jane")
			p.clock.moves(time.Hour - time.Second)
			if code, d := p.who(); code != http.StatusOK || d.User != "jane" {
				t.Errorf("%d %+v", code, d)
			}
			p.signOut()
			if n := p.provider.Counts(); n != (oidctest.Counts{Signed: 1, Renewed: 1, Revoked: 1}) {
				t.Errorf("%+v", n)
			}
		})
	}
}

// UI-03: what passes at a provider ends no session, even when its token has ended meanwhile.
func TestProviderIsBusy(t *testing.T) {
	for _, status := range []int{http.StatusFound, http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusServiceUnavailable} {
		p := newPerson(t, oidctest.Behaviour{})
		p.signIn("jane")
		p.clock.moves(time.Hour + time.Second)
		p.provider.Behave(oidctest.Behaviour{Status: status, Life: 3 * time.Hour})
		if code, d := p.who(); code != http.StatusOK || !strings.Contains(d.Problem, "which is tried again") ||
			!strings.Contains(d.Problem, http.StatusText(status)) {
			t.Errorf("%d: %d %+v", status, code, d)
		}
		p.provider.Behave(oidctest.Behaviour{Life: 3 * time.Hour})
		p.clock.moves(tryAgain)
		if code, d := p.who(); code != http.StatusOK || d.Problem != "" {
			t.Errorf("after %d: %d %+v", status, code, d)
		}
	}
}

// UI-03: a renewal without an ID token ends no session before the token that it has, and what came is given back.
func TestProviderRenewsNoToken(t *testing.T) {
	p := newPerson(t, oidctest.Behaviour{NoID: true})
	p.signIn("jane")
	revoked := p.events("/revoke", oidctest.Behaviour{NoID: true})
	p.clock.moves(time.Hour - renewBefore + time.Second)
	for range 2 {
		if code, d := p.who(); code != http.StatusOK || d.Problem != "" || p.provider.Counts().Renewed != 1 {
			t.Errorf("before the end: %d %+v, %+v", code, d, p.provider.Counts())
		}
	}
	p.clock.moves(renewBefore)
	if code, d := p.who(); code != http.StatusUnauthorized ||
		!strings.Contains(d.Problem, "renews it without a new ID token") {
		t.Errorf("at its end: %d %+v", code, d)
	}
	within(t, "a revocation", revoked)(true)
	p.revokes(1)
}

// events has requests for a path wait until each is told to go on.
func (p *person) events(path string, b oidctest.Behaviour) <-chan func(bool) {
	came := make(chan func(bool), 64)
	b.Before = func(r *http.Request) {
		if r.URL.Path == path {
			on := make(chan bool)
			came <- func(ok bool) { on <- ok }
			<-on
		}
	}
	p.provider.Behave(b)
	return came
}

// revokes fails the test if the provider has not revoked so many tokens when it has answered all that it was asked.
func (p *person) revokes(want int) {
	p.t.Helper()
	if err := p.provider.Down(); err != nil {
		p.t.Error(err)
	}
	if n := p.provider.Counts().Revoked; n != want {
		p.t.Errorf("%d tokens were revoked, want %d", n, want)
	}
}

// one is the session of the browser.
func (p *person) one() *session {
	p.t.Helper()
	for _, c := range p.cookies("/ui/") {
		if who, done := p.page.sessions.begin(c.Value); who != nil {
			done()
			return who
		}
	}
	p.t.Fatal("there is no session")
	return nil
}

// UI-03: while a provider hangs, a token that is good is used by everybody but the one who asks for the next.
func TestProviderHangs(t *testing.T) {
	p := newPerson(t, oidctest.Behaviour{})
	p.signIn("jane")
	p.clock.moves(time.Hour - time.Second)
	came := p.events("/token", oidctest.Behaviour{Life: 3 * time.Hour})
	who := p.one()
	asks := make(chan *gate.Refusal)
	go func() { _, refusal := p.page.bearer(context.Background(), who); asks <- refusal }()
	goOn := within(t, "a renewal", came)
	if code, d := p.who(); code != http.StatusOK || d.User != "jane" || p.provider.Counts().Renewed != 0 {
		t.Errorf("%d %+v, %+v", code, d, p.provider.Counts())
	}
	select {
	case <-asks:
		t.Fatal("it waited until the provider was given up")
	default:
	}
	goOn(true)
	if refusal := within(t, "the one who asks", asks); refusal != nil || p.provider.Counts().Renewed != 1 {
		t.Errorf("%+v, %+v", refusal, p.provider.Counts())
	}
}

// UI-03: when a token has ended, all requests wait for one answer of the provider, and none for longer than its
// browser.
func TestOneRenewalForAll(t *testing.T) {
	const most = 20
	p := newPerson(t, oidctest.Behaviour{})
	p.signIn("jane")
	p.clock.moves(time.Hour + time.Second)
	came := p.events("/token", oidctest.Behaviour{Life: 3 * time.Hour})
	who := p.one()
	tokens := make(chan string, most)
	ask := func() {
		token, refusal := p.page.bearer(context.Background(), who)
		if refusal != nil {
			token = ""
		}
		tokens <- token
	}
	go ask()
	goOn := within(t, "a renewal", came)
	for range most - 1 {
		go ask()
	}
	left, leave := context.WithCancel(context.Background())
	leave()
	if _, refusal := p.page.bearer(left, who); refusal == nil || refusal.Code != http.StatusServiceUnavailable {
		t.Errorf("a browser that is gone: %+v", refusal)
	}
	goOn(true)
	first := within(t, "a token", tokens)
	for range most - 1 {
		if token := within(t, "a token", tokens); token == "" || token != first {
			t.Errorf("tokens %q and %q", first, token)
		}
	}
	if n := p.provider.Counts().Renewed; n != 1 || len(came) > 0 {
		t.Errorf("renewed %d times, and asked %d times more", n, len(came))
	}
}

// UI-03: a provider that hangs keeps out nobody who has a token, and those on their way to it are bounded.
func TestProviderKeepsNobodyOut(t *testing.T) {
	p := newPerson(t, oidctest.Behaviour{})
	came := p.events("/.well-known/openid-configuration", oidctest.Behaviour{})
	client := p.client
	ended := make(chan error, mostChecks)
	var goOn []func(bool)
	for range mostChecks {
		go func() {
			resp, err := client.Get(p.front.URL + "/ui/oidc/start")
			if err == nil {
				err = resp.Body.Close()
			}
			ended <- err
		}()
		goOn = append(goOn, within(t, "a question", came))
	}
	p.another()
	if at := p.signIn("jane"); at.Path != "/ui/" {
		t.Errorf("it leads to %s", at)
	}
	if _, d := p.who(); !strings.Contains(d.Problem, "too many people sign in at the identity provider") {
		t.Errorf("one too many: %+v", d)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.front.URL+"/ui/session",
		strings.NewReader(`{"token": "admin-token"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Wherry-Page", "1")
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if code, d := p.who(); resp.StatusCode != http.StatusNoContent || code != http.StatusOK || d.User != "admin" {
		t.Errorf("by a token: %s, %d %+v", resp.Status, code, d)
	}
	for _, on := range goOn {
		on(true)
	}
	for range mostChecks {
		if err := within(t, "the end", ended); err != nil {
			t.Error(err)
		}
	}
}

// UI-03: signing out takes no longer than giveBackTime, and what a renewal that was going on brings is given back.
func TestSignOutWhileProviderHangs(t *testing.T) {
	p := newPerson(t, oidctest.Behaviour{})
	p.signIn("jane")
	p.clock.moves(time.Hour - time.Second)
	came := p.events("/token", oidctest.Behaviour{Life: 3 * time.Hour})
	who, ended := p.one(), make(chan bool)
	go func() { p.page.bearer(context.Background(), who); close(ended) }()
	goOn := within(t, "a renewal", came)
	begin := time.Now()
	p.signOut()
	if took := time.Since(begin); took > 2*giveBackTime {
		t.Errorf("signing out took %s", took)
	}
	if code, _ := p.who(); code != http.StatusUnauthorized {
		t.Errorf("after signing out: %d", code)
	}
	goOn(true)
	within(t, "the end of the renewal", ended)
	p.revokes(1)
}

// UI-03: what somebody had is given back though their browser is gone; that it could not be is logged.
func TestGivenBack(t *testing.T) {
	p := newPerson(t, oidctest.Behaviour{})
	left, leave := context.WithCancel(context.Background())
	leave()
	p.signIn("jane")
	p.page.giveBack(left, p.one())
	if n := p.provider.Counts().Revoked; n != 1 || p.log.String() != "" {
		t.Errorf("%d were revoked; it is logged %q", n, p.log)
	}
	p.signIn("jane")
	p.provider.Behave(oidctest.Behaviour{Status: http.StatusServiceUnavailable})
	p.signOut()
	if code, _ := p.who(); code != http.StatusUnauthorized ||
		!strings.Contains(p.log.String(), "503 Service Unavailable") {
		t.Errorf("%d; it is logged %q", code, p.log)
	}
}

// UI-03: whatever ends a session, what it could be renewed by is given back: another in its place, as here where its
// cookie is not sent when one comes back, too many of one person's, idleness, a token by which somebody signs in.
func TestEveryEndGivesBack(t *testing.T) {
	for name, ends := range map[string]func(*person){
		"another": func(p *person) { p.signIn("jane") },
		"too many": func(p *person) {
			for range mostOwn {
				p.clock.moves(time.Second)
				p.page.sessions.add("", "jane")
			}
		},
		"idle": func(p *person) {
			p.clock.moves(idleLimit)
			p.who()
		},
		"its token": func(p *person) { p.page.end(p.cookies("/ui/")[0].Value) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t, oidctest.Behaviour{})
			p.signIn("jane")
			secret := p.cookies("/ui/")[0].Value
			revoked := p.events("/revoke", oidctest.Behaviour{})
			ends(p)
			within(t, "a revocation", revoked)(true) // nobody waits for it
			if p.page.sessions.signedIn(secret) {
				t.Error("the session goes on")
			}
			p.revokes(1)
		})
	}
}
