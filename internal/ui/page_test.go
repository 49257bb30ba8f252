// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// UI-01 UI-03 UI-04: every answer, whatever it is, bounds what a browser makes of it; what a pod says is data.
func TestHeadersOfEveryAnswer(t *testing.T) {
	for _, mode := range []SignIn{ByLink, ByToken} {
		k := newKit(t, mode, reviews(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			if strings.HasSuffix(r.URL.Path, "/hinted") {
				h.Set("Set-Cookie", "of-the-pod")
				w.WriteHeader(http.StatusEarlyHints)
			}
			h.Set("Content-Type", "text/html")
			for _, name := range []string{"Set-Cookie", "Content-Security-Policy", "Access-Control-Allow-Origin",
				"Www-Authenticate", "Location", "Refresh", "Service-Worker-Allowed", "Cross-Origin-Opener-Policy",
				"X-Content-Type-Options", "Cache-Control", "Content-Disposition", "Clear-Site-Data"} {
				h.Set(name, "of-the-pod")
			}
			h.Set("Warning", `299 - "kept"`)
			if strings.HasSuffix(r.URL.Path, "/refused") {
				w.WriteHeader(http.StatusForbidden)
			}
			if strings.HasSuffix(r.URL.Path, "/flushed") {
				w.(http.Flusher).Flush()
			}
			_, _ = w.Write([]byte("<script>alert(1)</script>"))
		}))
		check := func(what string, resp *http.Response) {
			t.Helper()
			csp := resp.Header.Get("Content-Security-Policy")
			for name, want := range map[string]string{"X-Content-Type-Options": "nosniff",
				"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
				"Cross-Origin-Resource-Policy": "same-origin"} {
				if got := resp.Header.Values(name); len(got) != 1 || got[0] != want {
					t.Errorf("%s: %s is %q", what, name, got)
				}
			}
			if !strings.HasPrefix(csp, "default-src 'none'; ") || !strings.Contains(csp, "frame-ancestors 'none'") ||
				strings.Contains(csp, "unsafe") ||
				len(resp.Header.Values("Content-Security-Policy")) != 1 || strings.Contains(csp, "http") {
				t.Errorf("%s: %q", what, csp)
			}
		}
		for _, path := range []string{"/ui/", "/ui/pods/shop/web", "/ui/none.js", "/ui/assets/none.js", "/ui/sign-in",
			"/ui/session", "/ui/k8s/api", "/other"} {
			for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS"} {
				check(method+" "+path, k.ask(method, path, ""))
			}
			check("rebound "+path, k.ask("GET", path, "", "Host", "evil.example"))
		}
		k.signedIn()
		for path, code := range map[string]int{"/ui/k8s/api/v1/pods": 200, "/ui/k8s/refused": 403,
			"/ui/k8s/flushed": 200, "/ui/k8s/hinted": 200} {
			resp := k.ask("GET", path, "")
			check(path, resp)
			if k.text(code, resp) != "<script>alert(1)</script>" || resp.Header.Get("Warning") != `299 - "kept"` ||
				resp.Header.Get("Content-Disposition") != "attachment" ||
				resp.Header.Get("Cache-Control") != "no-store" ||
				!strings.Contains(resp.Header.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("%s: %v", path, resp.Header)
			}
			for name, values := range resp.Header {
				if strings.Contains(strings.Join(values, " "), "of-the-pod") {
					t.Errorf("%s: the browser gets %s: %q", path, name, values)
				}
			}
		}
	}
}

// UI-02 UI-03: a request that is not the page's own does not come as far as the API, whoever is signed in.
func TestForeignRequests(t *testing.T) {
	k := newKit(t, ByLink, never(t)).signedIn()
	evil := "http://evil.example"
	for name, headers := range map[string][]string{
		"another origin":        {"Origin", evil},
		"another site":          {"Sec-Fetch-Site", "cross-site"},
		"another port":          {"Sec-Fetch-Site", "same-site"},
		"a form":                {"X-Wherry-Page", "", "Content-Type", "text/plain"},
		"a name pointed here":   {"Host", "rebound.example", "Origin", "http://rebound.example"},
		"a script of a pod":     {"Sec-Fetch-Dest", "script"},
		"no cookie":             {"Cookie", ""},
		"another's cookie":      {"Cookie", "wherry-ui-8002=" + k.cookie},
		"a guess":               {"Cookie", "wherry-ui-8001=" + strings.Repeat("A", 43)},
		"a token":               {"Cookie", "", "Authorization", "Bearer of-the-kubeconfig"},
		"a socket from nowhere": {"Connection", "Upgrade", "Upgrade", "websocket", "Origin", ""},
	} {
		method := "DELETE"
		if name == "a socket from nowhere" {
			method = "GET"
		}
		resp := k.ask(method, "/ui/k8s/api/v1/namespaces/shop/pods/web", "", headers...)
		if resp.StatusCode < 400 {
			t.Errorf("%s: %s", name, resp.Status)
		}
		if message := k.status(resp.StatusCode, resp); message == "" {
			t.Errorf("%s: no words", name)
		}
	}
	for _, path := range []string{"/ui/k8s/api/v1/namespaces/shop/pods/web/proxy/", "/ui/k8s/api/%2e%2e/x",
		"/ui/%6b8s/a%2Fb"} {
		if resp := k.ask("GET", path, ""); resp.StatusCode < 400 {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}

// UI-02: what says who asks is the session's alone.
func TestWhatReachesTheAPI(t *testing.T) {
	for mode, authorization := range map[SignIn]string{ByLink: "Bearer of-the-kubeconfig",
		ByToken: "Bearer jane-token"} {
		got := make(chan *http.Request, 1)
		k := newKit(t, mode, reviews(func(_ http.ResponseWriter,
			r *http.Request) {
			got <- r.Clone(t.Context())
		})).signedIn()
		k.ask("PATCH", "/ui/k8s/api/v1/namespaces/shop/pods/a%2Fb?fieldManager=x&a=1", "{}", "Authorization",
			"Bearer other", "Impersonate-User", "root", "Impersonate-Group", "system:masters", "X-Remote-User", "root",
			"X-Forwarded-For", "10.0.0.1", "Origin", k.front.URL, "Referer", k.front.URL, "Content-Type",
			"application/merge-patch+json", "Accept", "application/json", "Sec-Websocket-Protocol",
			"v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.Zm9v", "Proxy-Authorization", "x")
		r := within(t, "the API's request", got)
		if r.Method != "PATCH" || r.URL.EscapedPath() != "/api/v1/namespaces/shop/pods/a%2Fb" ||
			r.URL.RawQuery != "fieldManager=x&a=1" ||
			r.RequestURI != r.URL.RequestURI() {
			t.Errorf("%s: %s %s (%s)", mode, r.Method, r.URL, r.RequestURI)
		}
		if r.Header.Get("Authorization") != authorization ||
			r.Header.Get("Content-Type") != "application/merge-patch+json" ||
			r.Header.Get("Accept") != "application/json" || r.Header.Get("User-Agent") != "wherry-ui/v1" ||
			r.Header.Get("Sec-Websocket-Protocol") != "v5.channel.k8s.io" {
			t.Errorf("%s: %v", mode, r.Header)
		}
		for name := range r.Header {
			for _, bad := range []string{"Cookie", "Impersonate", "X-Remote", "Origin", "Referer", "Sec-Fetch",
				"X-Wherry", "Proxy-"} {
				if strings.HasPrefix(name, bad) || name == "X-Forwarded-For" {
					t.Errorf("%s: the API gets %s: %v", mode, name, r.Header[name])
				}
			}
		}
	}
}

// deadlined is an answer that notes until when its request may be read.
type deadlined struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlined) SetReadDeadline(at time.Time) error  { d.read = at; return nil }
func (d *deadlined) SetWriteDeadline(at time.Time) error { d.write = at; return nil }

// RS-01: a body that never comes holds a connection for a minute, also when nobody has signed in; the deadlines of the
// API's own chain reach the connection.
func TestDeadlines(t *testing.T) {
	w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest("POST", "/ui/session", strings.NewReader("{"))
	New(Options{SignIn: ByToken}).ServeHTTP(w, r)
	if left := time.Until(w.read); left <= 0 || left > bodyTime {
		t.Errorf("the body has %s", left)
	}
	at := time.Now().Add(time.Hour)
	Within(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		if err := errors.Join(c.SetReadDeadline(at), c.SetWriteDeadline(at)); err != nil {
			t.Error(err)
		}
	})).ServeHTTP(w, r)
	if !w.read.Equal(at) || !w.write.Equal(at) {
		t.Errorf("the connection's deadlines are %s and %s", w.read, w.write)
	}
}
