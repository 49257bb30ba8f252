// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
)

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Identity: no token and no key is ever logged, good or bad, with everything logged that can be; keys are their owner's
// only.
func TestSecretsAreNotLogged(t *testing.T) {
	dir := t.TempDir()
	log := &logged{}
	tokens := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte("static-secret-token,jane,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, stop := serve(t, api.Config{DataDir: dir, BindAddress: "127.0.0.1",
		EtcdServers: []string{shared.etcd.Endpoint()}, EtcdPrefix: "/secrecy", TokenAuthFile: tokens,
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.Level(-20)}))})
	admin := configOf(t, s)
	c := clientOf(t, admin)
	ns := namespace(t, c)
	account := accountToken(t, c, ns, "default")
	bad := account[:len(account)-8] + "AAAAAAAA"
	bootstrap := bootstrapToken(t, c, "secret", nil)
	adminToken, err := os.ReadFile(filepath.Join(dir, "pki", "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{account, bad, bootstrap, "wrongg.fedcba9876543210", "static-secret-token", "unheard-of-token",
		strings.TrimSpace(string(adminToken))}
	for _, token := range secrets {
		config := rest.AnonymousClientConfig(admin)
		config.BearerToken = token
		_, _ = whoami(t, config) // some are good, some are not
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		if _, err := c.AuthenticationV1().TokenReviews().Create(t.Context(), review,
			metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}
	stop()
	text := log.String()
	if text == "" {
		t.Fatal("nothing was logged")
	}
	for _, secret := range append(secrets, "0123456789abcdef", "PRIVATE KEY") {
		if strings.Contains(text, secret) {
			t.Errorf("the log tells %q", secret)
		}
	}
	if signature := account[strings.LastIndex(account, "."):]; strings.Contains(text, signature) {
		t.Error("the log tells a part of a token")
	}
	for _, file := range []string{"ca.key", "sa.key", "admin.token"} {
		if info, err := os.Stat(filepath.Join(dir, "pki", file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
}
