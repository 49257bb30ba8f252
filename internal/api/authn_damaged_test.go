// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
)

// RS-07: a token of the administrator that is empty is refused in words and never good for anybody; tokens and keys
// that are missing are made anew, and those from before are no longer good. ATTACK C27.
func TestDamagedIdentity(t *testing.T) {
	dir := t.TempDir()
	cfg := api.Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{shared.etcd.Endpoint()},
		EtcdPrefix: "/damagedidentity"}
	file := filepath.Join(dir, "pki", "admin.token")
	token := func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	answer := func(s *api.Server, authorization string) int {
		t.Helper()
		resp, _ := ask(t, rest.AnonymousClientConfig(configOf(t, s)), http.MethodGet, "/api/v1/namespaces", nil,
			"Authorization", authorization)
		return resp.StatusCode
	}
	s, stop := serve(t, cfg)
	c := clientOf(t, configOf(t, s))
	account, first := accountToken(t, c, namespace(t, c), "default"), token()
	for _, nothing := range []string{"Bearer", "Bearer ", "Bearer \t", "Basic Og==", "bearer " + first[:len(first)-1]} {
		if code := answer(s, nothing); code != http.StatusUnauthorized {
			t.Errorf("%q: %d", nothing, code)
		}
	}
	if code := answer(s, "Bearer "+first); code != http.StatusOK {
		t.Fatalf("the administrator's token: %d", code)
	}
	stop()

	for what, text := range map[string]string{"empty": "", "a newline": "\n", "spaces": "  \n "} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if _, err := api.New(ctx, cfg); err == nil || !strings.Contains(err.Error(), file) ||
			!strings.Contains(err.Error(), "write a new one") {
			t.Errorf("a token that is %s: %v", what, err)
		}
		cancel()
	}

	for _, name := range []string{"admin.token", "sa.key"} {
		if err := os.Remove(filepath.Join(dir, "pki", name)); err != nil {
			t.Fatal(err)
		}
	}
	s, _ = serve(t, cfg)
	if code := answer(s, "Bearer "+token()); code != http.StatusOK || token() == first {
		t.Errorf("the new token: %d", code)
	}
	for what, old := range map[string]string{"the former token": first, "a token of the key before": account} {
		if code := answer(s, "Bearer "+old); code != http.StatusUnauthorized {
			t.Errorf("%s: %d", what, code)
		}
	}
}
