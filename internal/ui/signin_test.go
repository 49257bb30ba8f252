// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func never(t *testing.T) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the API was asked: %s %s", r.Method, r.URL) }
}

// UI-03: a link signs in once; what comes of it is a cookie that no script reads and no other page sends.
func TestSignInByLink(t *testing.T) {
	k := newKit(t, ByLink, reviews(never(t)))
	if k.text(http.StatusUnauthorized, k.ask("GET", "/ui/session", "")) != `{"signIn":"link"}`+"\n" {
		t.Error("a browser that is signed out is not told how to sign in")
	}
	link := k.page.Link()
	k.text(http.StatusMethodNotAllowed, k.ask("HEAD", link, ""))
	k.text(http.StatusForbidden, k.ask("GET", link, "", "Sec-Purpose", "prefetch;prerender"))
	resp := k.ask("GET", link, "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest",
		"document")
	if body := k.text(http.StatusSeeOther, resp); strings.Contains(body, "once") ||
		resp.Header.Get("Location") != "/ui/pods?namespace=shop" {
		t.Errorf("the link leads to %q, with %q", resp.Header.Get("Location"), body)
	}
	c := k.session(resp)
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/ui/" || c.Domain != "" {
		t.Errorf("the cookie is %s", c.Raw)
	}
	var who description
	if err := json.Unmarshal([]byte(k.text(http.StatusOK, k.ask("GET", "/ui/session", ""))), &who); err != nil ||
		who.User != "admin" || len(who.Groups) != 1 || who.SignIn != ByLink || who.Command.Context != "c" ||
		who.Version != "v1" {
		t.Errorf("%v: %+v", err, who)
	}
	k.text(http.StatusSeeOther, k.ask("GET", link, "")) // who has used it comes back by it

	thief := *k
	thief.cookie = ""
	for name, used := range map[string]string{"used": link, "wrong": "/ui/sign-in?once=x", "none": "/ui/sign-in"} {
		resp := thief.ask("GET", used, "")
		if body := thief.text(http.StatusForbidden, resp); !strings.Contains(body, "has been used") ||
			len(resp.Cookies()) > 0 {
			t.Errorf("%s: %s %v", name, body, resp.Cookies())
		}
	}
	late := k.page.Link()
	k.clock.moves(linkLife)
	thief.text(http.StatusForbidden, thief.ask("GET", late, ""))
	thief.status(http.StatusMethodNotAllowed, thief.ask("POST", "/ui/session", `{"token": "jane-token"}`))

	old := k.cookie
	k.signedIn()
	thief.cookie = old
	thief.text(http.StatusUnauthorized, thief.ask("GET", "/ui/session", "")) // the browser has a new one
	thief.cookie = k.cookie + "; wherry-ui-8001=" + k.cookie
	thief.text(http.StatusUnauthorized, thief.ask("GET", "/ui/session", ""))
	thief.cookie = hexOf(hashOf(k.cookie)) // what is kept of a secret is not the secret
	thief.text(http.StatusUnauthorized, thief.ask("GET", "/ui/session", ""))

	resp = k.ask("DELETE", "/ui/session", "")
	k.text(http.StatusNoContent, resp)
	if c := resp.Cookies(); len(c) != 1 || c[0].MaxAge >= 0 || c[0].Value != "" {
		t.Errorf("signing out leaves the cookie: %v", c)
	}
	k.text(http.StatusUnauthorized, k.ask("GET", "/ui/session", ""))
}

func hexOf(h secretHash) string { return fmt.Sprintf("%x", h[:]) }

// UI-03: Safari, which takes no secure cookie over loopback, gets one it takes there, and a secure one with TLS.
func TestTakesSecure(t *testing.T) {
	for agent, want := range map[string]bool{
		"": true, "curl/8": true, "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0": true,
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36":          true,
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18 Safari/605": false,
	} {
		if takesSecure(agent) != want {
			t.Errorf("%s: want %t", agent, want)
		}
	}
}

// UI-02 UI-03: a bearer token signs in as the one whom the API knows by it, and leaves no trace in the browser.
func TestSignInByToken(t *testing.T) {
	asked := make(chan string, 1)
	k := newKit(t, ByToken, reviews(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		writeJSON(w, http.StatusOK, map[string]string{"kind": "PodList"})
	}))
	if k.text(http.StatusUnauthorized, k.ask("GET", "/ui/session", "")) != `{"signIn":"token"}`+"\n" {
		t.Error("a browser that is signed out is not told how to sign in")
	}
	json := []string{"Content-Type", "application/json"}
	for body, says := range map[string]string{
		`{"token": "wrong"}`: "does not know this token", `{"token": ""}`: "a word of ASCII",
		`{"token": "a b"}`: "a word of ASCII", `{"token": "a\nb"}`: "a word of ASCII", `{`: `want {"token": "..."}`,
		`[]`: `want {"token"`, `{"token": "` + strings.Repeat("x", maxSignIn) + `"}`: "cannot be read",
	} {
		code := http.StatusBadRequest
		if says == "does not know this token" {
			code = http.StatusUnauthorized
		}
		resp := k.ask("POST", "/ui/session", body, json...)
		if got := k.status(code, resp); !strings.Contains(got, says) || len(resp.Cookies()) > 0 {
			t.Errorf("%.40s: %s", body, got)
		}
	}
	k.status(http.StatusBadRequest, k.ask("POST", "/ui/session", `{"token": "jane-token"}`, "Content-Type",
		"text/plain"))
	k.status(http.StatusForbidden, k.ask("POST", "/ui/session", `{"token": "jane-token"}`,
		append(json, "X-Wherry-Page", "")...))
	k.text(http.StatusForbidden, k.ask("GET", k.page.Link(), "")) // there are no links here

	resp := k.ask("POST", "/ui/session", `{"token": " jane-token\n"}`, json...)
	if body := k.text(http.StatusNoContent, resp); strings.Contains(body+k.session(resp).Raw, "jane-token") {
		t.Error("the browser has the token")
	}
	if got := k.text(http.StatusOK, k.ask("GET", "/ui/session", "")); !strings.Contains(got, `"user":"jane"`) {
		t.Error(got)
	}
	k.text(http.StatusOK, k.ask("GET", "/ui/k8s/api/v1/pods", "", "Authorization", "Bearer other"))
	if got := within(t, "the API's request", asked); got != "Bearer jane-token" {
		t.Errorf("the API was asked by %q", got)
	}
}

// UI-03: a token that has come to its end is the end of its session.
func TestTokenEnds(t *testing.T) {
	ended := false
	k := newKit(t, ByToken, func(w http.ResponseWriter, r *http.Request) {
		if ended {
			writeStatus(w, http.StatusUnauthorized, "Unauthorized")
			return
		}
		reviews(never(t))(w, r)
	}).signedIn()
	k.text(http.StatusOK, k.ask("GET", "/ui/session", ""))
	ended = true
	k.text(http.StatusUnauthorized, k.ask("GET", "/ui/session", ""))
	ended = false
	k.text(http.StatusUnauthorized, k.ask("GET", "/ui/session", ""))
}

// UI-03: sign-ins that wait for the API are bounded.
func TestSignInsAtOnce(t *testing.T) {
	arrived, answer := make(chan bool, mostChecks), make(chan bool)
	k := newKit(t, ByToken, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- true
		<-answer
		writeStatus(w, http.StatusUnauthorized, "Unauthorized")
	})
	codes := make(chan int, mostChecks)
	sign := func() *http.Response {
		return k.ask("POST", "/ui/session", `{"token": "guess"}`, "Content-Type", "application/json")
	}
	for range mostChecks {
		go func() { codes <- sign().StatusCode }()
	}
	for range mostChecks {
		within(t, "a sign-in", arrived)
	}
	if resp := sign(); resp.Header.Get("Retry-After") == "" ||
		!strings.Contains(k.status(http.StatusTooManyRequests, resp), "too many sign-ins") {
		t.Error("one sign-in too many is not told so")
	}
	close(answer)
	for range mostChecks {
		if code := within(t, "an answer", codes); code != http.StatusUnauthorized {
			t.Errorf("a sign-in was answered %d", code)
		}
	}
}

// UI-03: whatever the body of a sign-in, its token fits into a header.
func FuzzTokenIn(f *testing.F) {
	f.Add([]byte(`{"token": "abc"}`))
	f.Add([]byte(`{"token": "a\r\nX: y"}`))
	f.Add([]byte(`{"Token": 7}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		token, err := tokenIn(body)
		if (err == nil) != (token != "") || strings.ContainsAny(token, "\r\n \x00") {
			t.Fatalf("%q: %q, %v", body, token, err)
		}
	})
}
