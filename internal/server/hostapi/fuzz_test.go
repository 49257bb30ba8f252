// SPDX-License-Identifier: Apache-2.0

package hostapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/registry"
)

// FuzzRequest: whatever comes to the host API's socket, it is answered: with JSON or an archive, or with words that name no password. Nothing
// is removed, and no login is kept, that was not asked for.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ query, kind, body string }{
		{"ref=example/web:1", "", `{"user":"ann","password":"secret-0815"}`}, {"ref=example/web:1&force=true", "", ""},
		{"registry=r.example", "application/json", `{"user":"","password":"secret-0815"}`},
		{"registry=%zz", "", "null"}, {"ref=a&as=wherry.dev/pause:1", "", "{"}, {"all=true", "",
			`{"password":["secret-0815"]}`}, {"keys=true&volumes=maybe", "", ""},
		{"", "application/x-www-form-urlencoded", "ref=example%2Fweb:1"}, {"ref=a&ref=b", "multipart/form-data; boundary=x",
			"--x\r\nContent-Disposition: form-data; name=\"ref\"\r\n\r\na\r\n--x--\r\n"},
	} {
		for route := range routes() {
			f.Add(uint8(route), seed.query, seed.kind, []byte(seed.body))
		}
	}
	f.Fuzz(func(t *testing.T, route uint8, query, kind string, body []byte) {
		n, kept := &node{}, 0
		s := &Server{Images: n, Containers: n, Archives: n, Pull: func(context.Context, string, *registry.Login) error { return nil },
			Login: func(_ context.Context, _ string, l registry.Login) (LoggedIn, error) {
				if kept++; l.User == "" || l.Password == "" {
					t.Errorf("half a login is taken: %+v", l)
				}
				return LoggedIn{}, nil
			},
			Logout: func(string) (LoggedIn, error) { return LoggedIn{}, nil },
			Backup: func(_ context.Context, w io.Writer, _ BackupParts) error {
				_, err := io.WriteString(w, "backup")
				return err
			}}
		method, path, _ := strings.Cut(routes()[int(route)%len(routes())], " ")
		req := httptest.NewRequest(method, path, bytes.NewReader(body))
		req.URL.RawQuery = query
		req.Header.Set("Content-Type", kind)
		answer := httptest.NewRecorder()
		s.Handler().ServeHTTP(answer, req)
		switch {
		case answer.Code != http.StatusOK && strings.TrimSpace(answer.Body.String()) == "":
			t.Errorf("%d without a word", answer.Code)
		case answer.Code != http.StatusOK && strings.Contains(answer.Body.String(), "secret-0815") && !strings.Contains(query,
			"secret-0815"):
			t.Errorf("the password is told: %s", answer.Body)
		case answer.Code == http.StatusOK && answer.Header().Get("Content-Type") == "application/json" && !json.Valid(answer.Body.Bytes()):
			t.Errorf("no JSON: %s", answer.Body)
		}
		if len(n.removed) > 0 && method != http.MethodDelete && !strings.HasSuffix(path, "/prune") || kept > 0 &&
			!strings.HasSuffix(path, "/login") {
			t.Errorf("%s %s removed %q and kept %d logins", method, path, n.removed, kept)
		}
		for _, id := range n.removed {
			if id == pause.Id || id == web.Id && !strings.Contains(query+string(body), "force") {
				t.Errorf("%s %s?%s removed %s", method, path, query, id)
			}
		}
	})
}

func routes() []string {
	return []string{"GET /v1/images", "POST /v1/images/import", "POST /v1/images/pull", "DELETE /v1/images",
		"GET /v1/images/inspect", "GET /v1/images/transfers", "POST /v1/images/tag",
		"POST /v1/images/prune", "POST /v1/registries/login", "POST /v1/registries/logout", "GET /v1/images/export", "GET /v1/backup"}
}
