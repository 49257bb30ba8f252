// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/oauth2"
)

// UI-03: what a provider tells of itself is taken if it is the provider's that was asked, and leads nowhere without TLS.
func TestDocument(t *testing.T) {
	const issuer = "https://login.example"
	good := `{"issuer":"https://login.example","authorization_endpoint":"https://login.example/a","token_endpoint":"https://login.example/t",
		"revocation_endpoint":"http://login.example/r","scopes_supported":["email","openid","x"]}`
	d, err := documentOf([]byte(good), issuer)
	if err != nil || d.Revocation != "" || !slices.Equal(d.scopes(nil), []string{"openid", "email"}) || !d.inHeader() {
		t.Errorf("%v: %+v", err, d)
	}
	for methods, want := range map[string]bool{"": true, "client_secret_basic": true, "client_secret_post": false,
		`client_secret_post","client_secret_basic`: true, `private_key_jwt","client_secret_post`: false} {
		told := strings.Replace(good, "{", `{"token_endpoint_auth_methods_supported":["`+methods+`"],`, 1)
		if methods == "" {
			told = strings.Replace(good, "{", `{"token_endpoint_auth_methods_supported":[],`, 1)
		}
		if d, err := documentOf([]byte(told), issuer); err != nil || d.inHeader() != want {
			t.Errorf("%q: %v, %t, want %t", methods, err, d.inHeader(), want)
		}
	}
	for change, says := range map[[2]string]string{
		{`"issuer":"https://login.example"`, `"issuer":"https://evil.example"`}: "another issuer",
		{"https://login.example/t", "http://login.example/t"}:                   "token_endpoint",
		{"https://login.example/a", "javascript:alert(1)"}:                      "authorization_endpoint",
		{"{", "["}: "not JSON",
	} {
		if _, err := documentOf([]byte(strings.Replace(good, change[0], change[1], 1)), issuer); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", change[1], err)
		}
	}
}

// UI-03: what is asked for is what was named, or what the provider says that it has.
func TestScopes(t *testing.T) {
	for _, row := range []struct{ has, named, want string }{
		{"", "", "openid profile email"},
		{"openid", "", "openid"},
		{"groups x openid offline_access profile", "", "openid profile groups offline_access"},
		{"openid email", "openid roles email", "openid roles email"},
		{"", "roles", "openid roles"},
	} {
		if got := strings.Join((document{Scopes: strings.Fields(row.has)}).scopes(strings.Fields(row.named)), " "); got != row.want {
			t.Errorf("of %q, with %q: %q, want %q", row.has, row.named, got, row.want)
		}
	}
	if err := CheckScopes([]string{"openid", "https://x.example/a.b", "!"}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "a b", `a"`, `a\b`, "ä", "a\n"} {
		if CheckScopes([]string{"a", bad}) == nil {
			t.Errorf("%q is a scope", bad)
		}
	}
}

func jwt(body string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(body)) + ".x"
}

// UI-03: of an ID token is read whose it is, and until when; what is none is refused.
func TestClaims(t *testing.T) {
	if c, err := claimsOf(jwt(`{"sub":"jane","nonce":"n","exp":1800000000.5}`)); err != nil || c.Subject != "jane" || c.Nonce != "n" ||
		c.Expires.Unix() != 1800000000 {
		t.Errorf("%v: %+v", err, c)
	}
	for _, bad := range []string{"", "a.b", "a.!.c", jwt("x"), jwt(`{"sub":"jane"}`), jwt(`{"exp":1}`), jwt(`{"sub":"a","exp":1e300}`), jwt(`{"sub":1,"exp":1}`)} {
		if c, err := claimsOf(bad); err == nil {
			t.Errorf("%q: %+v", bad, c)
		}
	}
}

// UI-03: no token makes the reading of it fail.
func FuzzClaims(f *testing.F) {
	f.Add(`{"sub":"jane","nonce":"n","exp":1800000000}`)
	f.Fuzz(func(t *testing.T, body string) {
		if c, err := claimsOf(jwt(body)); err == nil && (c.Subject == "" || c.Expires.IsZero()) {
			t.Fatalf("%q: %+v", body, c)
		}
	})
}

// UI-04: a provider's words are on one line, draw what they say, and are cut.
func FuzzLine(f *testing.F) {
	f.Add("a\nb\x1b[31m\u202e")
	f.Fuzz(func(t *testing.T, text string) {
		out := line(text)
		if strings.ContainsFunc(out, func(r rune) bool { return !unicode.IsPrint(r) }) || len([]rune(out)) > mostWords+2 {
			t.Fatalf("%q", out)
		}
	})
}

// UI-03: what a provider says of a token for good, and what is of the moment, decides whether it is asked again.
func TestProblemOf(t *testing.T) {
	with := func(status int, code string) error {
		return &oauth2.RetrieveError{Response: &http.Response{StatusCode: status, Status: fmt.Sprint(status, " words")}, ErrorCode: code}
	}
	for _, row := range []struct {
		err     error
		refused bool
		says    string
	}{
		{with(400, "invalid_grant"), true, "sign in again (invalid_grant)"},
		{with(401, "invalid_client"), true, "--ui-oidc-client-secret-file"},
		{with(400, "unauthorized_client"), true, "may not sign people in"},
		{with(400, "strange\n"), false, "login.example answers strange"},
		{with(400, "temporarily_unavailable"), false, "it is busy"},
		{with(400, "server_error"), false, "it has a fault"},
		{with(400, "invalid_scope"), false, "(invalid_scope)"},
		{with(400, ""), false, "login.example answers 400 words"},
		{with(403, ""), false, "login.example answers 403 words"},
		{with(302, ""), false, "login.example answers 302 words"},
		{with(302, "invalid_grant"), false, "(invalid_grant)"},
		{with(408, "invalid_grant"), false, "(invalid_grant)"},
		{with(429, ""), false, "login.example answers 429 words"},
		{with(429, "invalid_client"), false, "(invalid_client)"},
		{with(500, "invalid_grant"), false, "(invalid_grant)"},
		{with(503, ""), false, "login.example answers 503 words"},
		{errors.New("dial tcp: connection refused"), false, "cannot be asked: dial tcp: connection refused"},
	} {
		if p := problemOf("https://login.example", row.err); p.Refused != row.refused || !strings.Contains(p.Words, row.says) {
			t.Errorf("%v: %+v", row.err, p)
		}
	}
	if problemOf("https://login.example", nil) != nil {
		t.Error("a problem came of nothing")
	}
}

// UI-03: a provider whose document is not to be read, or is somebody else's, has refused nobody: it may be mended.
func TestOddDocument(t *testing.T) {
	for _, row := range []struct {
		code int
		says string
	}{{200, "not JSON"}, {302, "302 Found"}, {404, "404 Not Found"}, {503, "503 Service Unavailable"}} {
		srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(row.code)
			_, _ = w.Write([]byte("<h1>a page</h1>"))
		}))
		p, err := New(Options{Issuer: srv.URL, ClientID: "x", Now: time.Now,
			CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Renew(t.Context(), Tokens{Refresh: "r", Subject: "jane"})
		var problem *Problem
		if !errors.As(err, &problem) || problem.Refused || !strings.Contains(problem.Words, row.says) {
			t.Errorf("%d: %+v", row.code, err)
		}
		srv.Close()
	}
}
