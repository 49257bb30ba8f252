// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/imagename"
	"github.com/wherryproject/wherry/internal/node/image"
)

func TestHost(t *testing.T) {
	for given, want := range map[string]string{
		"registry.example.com": "registry.example.com", "https://Reg.example:5000/": "reg.example:5000", "docker.io": "docker.io",
		"https://index.docker.io/v1/": "docker.io", "registry-1.docker.io": "docker.io", "localhost:5000": "localhost:5000",
		"": "", "reg.example/team": "", "ann@reg.example": "",
	} {
		if got, err := Host(given); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v; want %q", given, got, err, want)
		}
	}
}

// A login is kept for the agent to read, in a file of root's alone, and what else was in it stays.
func TestLogins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	l := Logins{path}
	if found, err := l.Remove("reg.example"); found || err != nil {
		t.Errorf("without a file: %v, %v", found, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a logout of nothing made the file")
	}
	if err := os.WriteFile(path, []byte(`{"auths": {"old.example": {"auth": "YTpi"}}, "credsStore": "pass"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"reg.example:5000", "docker.io"} {
		if err := l.Set(host, Login{"ann", "secret:word"}); err != nil {
			t.Fatal(err)
		}
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", st.Mode(), err)
	}
	var ring image.Keyring
	if err := ring.AddFile(path); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"reg.example:5000/app:1": "ann secret:word", "busybox": "ann secret:word", "old.example/x": "a b", "reg.example/app:1": ""} {
		ref, err := imagename.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, a := range ring.For(ref) {
			got += a.Username + " " + a.Password
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for _, host := range []string{"docker.io", "reg.example:5000"} {
		if found, err := l.Remove(host); !found || err != nil {
			t.Errorf("%s: %v, %v", host, found, err)
		}
	}
	text, err := os.ReadFile(path)
	var left struct {
		Auths      map[string]any
		CredsStore string
	}
	if err == nil {
		err = json.Unmarshal(text, &left)
	}
	if err != nil || len(left.Auths) != 1 || left.CredsStore != "pass" {
		t.Errorf("left %s, %v", text, err)
	}
	if err := os.WriteFile(path, []byte("no json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Set("x", Login{"a", "b"}); err == nil || !strings.Contains(err.Error(), "was left as it is") {
		t.Errorf("got %v", err)
	}
}

// trusted is a folder of settings for a registry behind a URL.
func trusted(t *testing.T, url string) string {
	t.Helper()
	dir := t.TempDir()
	host := strings.SplitN(url, "://", 2)[1]
	if err := os.MkdirAll(filepath.Join(dir, host), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, host, "hosts.toml"), fmt.Appendf(nil, "server = %q\n", url), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A registry judges a login, by itself or by whoever gives its tokens.
func TestVerify(t *testing.T) {
	var srv *httptest.Server
	takes := func(r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		return user == "ann" && password == "secret"
	}
	mux := http.NewServeMux()
	mode := ""
	mux.HandleFunc("/v2/", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case mode == "open", mode == "basic" && takes(r), mode == "token" && r.Header.Get("Authorization") == "Bearer good":
		case mode == "web":
			w.WriteHeader(http.StatusNotFound)
		case mode == "token":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="reg"`, srv.URL))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="reg"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // a registry without that flow
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if !takes(r) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"token": "good"}`)
	})
	srv = httptest.NewServer(mux)
	defer srv.Close()
	host := srv.Listener.Addr().String()
	dir := trusted(t, srv.URL)
	for _, c := range []struct {
		mode, password string
		asked          bool
		want           string
	}{
		{"basic", "secret", true, ""},
		{"basic", "wrong", true, `does not take user "ann" with this password`},
		{"token", "secret", true, ""},
		{"token", "wrong", true, `does not take user "ann" with this password`},
		{"open", "anything", false, ""},
		{"web", "secret", false, "does not answer as a registry: 404 Not Found"},
	} {
		mode = c.mode
		asked, err := Verify(t.Context(), dir, host, Login{"ann", c.password})
		if asked != c.asked || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: asked %v, %v", c.mode, c.password, asked, err)
		}
	}
	srv.Close()
	if _, err := Verify(t.Context(), dir, host, Login{"ann", "secret"}); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("of a registry that is away: %v", err)
	}
}

// A registry without TLS is told with what to write where.
func TestPlainHTTP(t *testing.T) {
	err := unreached("/d/registries", "reg.example:5000", fmt.Errorf(`Get "https://x": http: server gave HTTP response to HTTPS client`))
	for _, want := range []string{`server = "http://reg.example:5000"`, "/d/registries/reg.example:5000/hosts.toml"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
	err = unreached("/d/registries", "reg.example:22", fmt.Errorf(`Get "https://x": tls: first record does not look like a TLS handshake`))
	if want := "registry reg.example:22 does not speak TLS: check its port"; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v does not begin with %s", err, want)
	}
}
