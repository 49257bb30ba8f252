// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/leaktest"
)

// UI-01: when a page's requests are over, nothing of them runs.
func TestMain(m *testing.M) { leaktest.Main(m) }

// kit is a page on a port of its own, and the API behind it.
type kit struct {
	t      *testing.T
	clock  *clock
	page   *Page
	front  *httptest.Server
	client *http.Client
	cookie string // "": signed out
}

// newKit serves a page on loopback. mode is how the page reaches api: over the network with credentials of its own
// (ByLink), or in the process (ByToken).
func newKit(t *testing.T, mode SignIn, api http.HandlerFunc) *kit {
	t.Helper()
	k := &kit{t: t, clock: newClock()}
	o := Options{SignIn: mode, Now: k.clock.now, Port: 8001, Version: "v1", Namespace: "shop",
		Command: Command{Kubeconfig: "/tmp/kc", Context: "c"}}
	o.API = Within(api)
	if mode == ByLink {
		back := httptest.NewServer(api)
		t.Cleanup(back.Close)
		base, err := url.Parse(back.URL)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		o.API = Remote(base, withCredentials{transport}, Words(base), slog.New(slog.DiscardHandler))
	}
	k.serve(o)
	return k
}

func (k *kit) serve(o Options) {
	k.page = New(o)
	k.front = httptest.NewServer(k.page)
	k.client = &http.Client{Transport: &http.Transport{DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	k.t.Cleanup(func() {
		k.client.CloseIdleConnections()
		k.front.Close()
	})
}

// withCredentials is what client-go does for a kubeconfig with a token.
type withCredentials struct{ next http.RoundTripper }

func (c withCredentials) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer of-the-kubeconfig")
	}
	return c.next.RoundTrip(r)
}

// ask makes a request as the page's browser does, with further headers, each a name and a value.
func (k *kit) ask(method, path, body string, headers ...string) *http.Response {
	k.t.Helper()
	req, err := http.NewRequest(method, k.front.URL+path, strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("X-Wherry-Page", "1")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if k.cookie != "" {
		req.Header.Set("Cookie", "wherry-ui-8001="+k.cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			req.Host = headers[i+1]
		case headers[i+1] == "":
			req.Header.Del(headers[i])
		default:
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := k.client.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// text is what a request is answered, with its status checked.
func (k *kit) text(code int, resp *http.Response) string {
	k.t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	if resp.StatusCode != code {
		k.t.Errorf("%s %s: %s, want %d: %s", resp.Request.Method, resp.Request.URL.Path, resp.Status, code, body)
	}
	return string(body)
}

// status is the message of a Kubernetes Status.
func (k *kit) status(code int, resp *http.Response) string {
	k.t.Helper()
	var s metav1.Status
	text := k.text(code, resp)
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.Kind != "Status" || int(s.Code) != code {
		k.t.Errorf("%s: %v: want a Status of %d: %s", resp.Request.URL.Path, err, code, text)
	}
	return s.Message
}

// session takes the cookie of an answer, which it must have.
func (k *kit) session(resp *http.Response) *http.Cookie {
	k.t.Helper()
	for _, c := range resp.Cookies() {
		if c.Name == "wherry-ui-8001" {
			k.cookie = c.Value
			return c
		}
	}
	k.t.Fatalf("%s has no cookie: %v", resp.Request.URL.Path, resp.Header)
	return nil
}

// signedIn is a kit whose browser is signed in.
func (k *kit) signedIn() *kit {
	k.t.Helper()
	if k.page.o.SignIn == ByLink {
		k.session(k.ask("GET", k.page.Link(), ""))
	} else {
		k.session(k.ask("POST", "/ui/session", `{"token": "jane-token"}`, "Content-Type", "application/json"))
	}
	return k
}

// reviews answers SelfSubjectReviews by the token, and everything else by next.
func reviews(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/authentication.k8s.io/v1/selfsubjectreviews" {
			next(w, r)
			return
		}
		user := map[string]string{"Bearer jane-token": "jane",
			"Bearer of-the-kubeconfig": "admin"}[r.Header.Get("Authorization")]
		if user == "" {
			writeStatus(w, http.StatusUnauthorized, "Unauthorized")
			return
		}
		writeJSON(w, http.StatusCreated, map[string]any{"status": map[string]any{"userInfo": map[string]any{
			"username": user, "groups": []string{"system:authenticated"}}}})
	}
}

// within fails the test if an event does not come.
func within[T any](t *testing.T, what string, events <-chan T) (event T) {
	t.Helper()
	select {
	case event = <-events:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: nothing for 30 s", what)
	}
	return event
}
