// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/pki"
)

// whoami is what `kubectl auth whoami` asks.
func whoami(t *testing.T, config *rest.Config) (authenticationv1.UserInfo, error) {
	t.Helper()
	review, err := clientOf(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// bootstrapToken stores a bootstrap token as kubeadm does and returns it; change is what is different.
func bootstrapToken(t *testing.T, c kubernetes.Interface, id string, change map[string]string) string {
	t.Helper()
	data := map[string]string{
		"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
		"expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	}
	for key, value := range change {
		data[key] = value
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Type: "bootstrap.kubernetes.io/token", StringData: data}
	if _, err := c.CoreV1().Secrets("kube-system").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CoreV1().Secrets("kube-system").Delete(context.Background(), s.Name, metav1.DeleteOptions{}) })
	return id + ".0123456789abcdef"
}

// Identity: bootstrap tokens, with all their fields.
func TestBootstrapTokens(t *testing.T) {
	c := client(t)
	t.Run("a good one", func(t *testing.T) {
		token := bootstrapToken(t, c, "aaaaaa",
			map[string]string{"auth-extra-groups": "system:bootstrappers:web,system:bootstrappers:db"})
		who, err := whoami(t, bearer(t, token))
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range []string{"system:bootstrappers", "system:bootstrappers:web", "system:bootstrappers:db",
			"system:authenticated"} {
			if !slices.Contains(who.Groups, group) {
				t.Errorf("groups %v lack %s", who.Groups, group)
			}
		}
		if who.Username != "system:bootstrap:aaaaaa" {
			t.Errorf("user %s", who.Username)
		}
		if _, err := clientOf(t, bearer(t, token)).CoreV1().Secrets("kube-system").List(t.Context(),
			metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("it may read secrets: %v", err)
		}
		if err := c.CoreV1().Secrets("kube-system").Delete(t.Context(), "bootstrap-token-aaaaaa",
			metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := whoami(t, bearer(t, token)); !apierrors.IsUnauthorized(err) {
			t.Errorf("after its Secret is gone: %v", err)
		}
	})
	for name, change := range map[string]map[string]string{
		"expired":                            {"expiration": time.Now().Add(-time.Second).UTC().Format(time.RFC3339)},
		"expiration is not an RFC 3339 time": {"expiration": "tomorrow"},
		"not for this":                       {"usage-bootstrap-authentication": "false"},
		"use is not said":                    {"usage-bootstrap-authentication": ""},
		"another secret":                     {"token-secret": "fedcba9876543210"},
		"another id":                         {"token-id": "zzzzzz"},
		"a group of masters":                 {"auth-extra-groups": "system:masters"},
	} {
		t.Run(name, func(t *testing.T) {
			if who, err := whoami(t, bearer(t, bootstrapToken(t, c, "bbbbbb",
				change))); !apierrors.IsUnauthorized(err) {
				t.Errorf("got %v, %v", who, err)
			}
		})
	}
	t.Run("the Secret is of another type", func(t *testing.T) {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-cccccc"},
			StringData: map[string]string{
				"token-id": "cccccc", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}}
		if _, err := c.CoreV1().Secrets("kube-system").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := whoami(t, bearer(t, "cccccc.0123456789abcdef")); !apierrors.IsUnauthorized(err) {
			t.Error(err)
		}
	})
}

// Identity: TokenReview answers for every kind of token, with audiences.
func TestTokenReview(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	admin, err := os.ReadFile(filepath.Join(shared.dir, "pki", "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	vault, err := request(t, c, ns, authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}})
	if err != nil {
		t.Fatal(err)
	}
	const own = "https://kubernetes.default.svc.cluster.local"
	for _, test := range []struct {
		name, token string
		audiences   []string
		user        string // empty: refused
		meant       []string
	}{
		{"admin", strings.TrimSpace(string(admin)), nil, "wherry-admin", nil},
		{"token file", "jane-token", nil, "jane", nil},
		{"token file, for this server", "jane-token", []string{own, "x"}, "jane", []string{own}},
		{"token file, for another", "jane-token", []string{"vault"}, "", nil},
		{"bootstrap token", bootstrapToken(t, c, "review", nil), nil, "system:bootstrap:review", nil},
		{"account", accountToken(t, c, ns, "default"), nil, "system:serviceaccount:" + ns + ":default", nil},
		{"account, for another, asked for that", vault.Status.Token, []string{"vault", "x"},
			"system:serviceaccount:" + ns + ":default", []string{"vault"}},
		{"account, for another", vault.Status.Token, nil, "", nil},
		{"nobody's", "nonsense", nil, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			review, err := c.AuthenticationV1().TokenReviews().Create(t.Context(),
				&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: test.token,
					Audiences: test.audiences}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			s := review.Status
			if s.Authenticated != (test.user != "") || s.User.Username != test.user ||
				!slices.Equal(s.Audiences, test.meant) {
				t.Errorf("got %+v", s)
			}
			if s.Authenticated != slices.Contains(s.User.Groups, "system:authenticated") ||
				s.Authenticated == (s.Error != "") {
				t.Errorf("got %+v", s)
			}
			if strings.Contains(s.Error, test.token) {
				t.Errorf("the error tells the token: %s", s.Error)
			}
		})
	}
	if _, err := c.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{},
		metav1.CreateOptions{}); !apierrors.IsBadRequest(err) {
		t.Errorf("no token: %v", err)
	}
	if _, err := clientOf(t, bearer(t, "jane-token")).AuthenticationV1().TokenReviews().Create(t.Context(),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "x"}},
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("anybody may try tokens: %v", err)
	}
}

// Identity: SelfSubjectReview, for a person and for a pod's account, with what its token is bound to.
func TestWhoami(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	if who, err := whoami(t, bearer(t, "jane-token")); err != nil || who.Username != "jane" || who.UID != "1" ||
		!slices.Equal(who.Groups, []string{"readers", "system:authenticated"}) {
		t.Errorf("jane: %+v, %v", who, err)
	}
	p := createPod(t, c, ns, pod("p"))
	req,
		err := request(t, c, ns,
		authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1",
			Kind: "Pod", Name: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	who, err := whoami(t, bearer(t, req.Status.Token))
	if err != nil {
		t.Fatal(err)
	}
	if got := who.Extra["authentication.kubernetes.io/pod-uid"]; !slices.Equal(got,
		authenticationv1.ExtraValue{string(p.UID)}) {
		t.Errorf("extra %v", who.Extra)
	}
	if got := who.Extra["authentication.kubernetes.io/credential-id"]; len(got) != 1 ||
		!strings.HasPrefix(got[0], "JTI=") {
		t.Errorf("extra %v", who.Extra)
	}
}

// Identity: tokens can be checked without asking the server, with what its discovery document and key set say; one that
// has expired is refused, one from after a clock that was set back is not (PL-05, rotation).
func TestKeysOfAccountTokens(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	token := accountToken(t, c, ns, "default")
	asAccount := clientOf(t, bearer(t, token)).Discovery().RESTClient()
	raw, err := asAccount.Get().AbsPath("/.well-known/openid-configuration").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil ||
		document["issuer"] != "https://kubernetes.default.svc.cluster.local" ||
		document["jwks_uri"] != "https://kubernetes.default.svc.cluster.local/openid/v1/jwks" {
		t.Errorf("document %s, %v", raw, err)
	}
	if raw, err = asAccount.Get().AbsPath("/openid/v1/jwks").DoRaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(raw, &set); err != nil || len(set.Keys) != 1 || !set.Keys[0].IsPublic() {
		t.Fatalf("keys %s, %v", raw, err)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{}
	if err := parsed.Claims(set, &claims); err != nil { // finds the key by its ID
		t.Fatal(err)
	}
	if resp, err := http.Get(shared.srv.URL() + "/openid/v1/jwks"); err == nil {
		resp.Body.Close()
		t.Error("a client without the CA was answered")
	}

	key, err := pki.LoadKey(filepath.Join(shared.dir, "pki", "sa.key"))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]map[string]any{
		"as it was":      {},
		"expired":        {"exp": time.Now().Add(-2 * time.Second).Unix()},
		"from later":     {"nbf": time.Now().Add(time.Minute).Unix()},
		"another issuer": {"iss": "https://elsewhere"},
		"another account": {"kubernetes.io": map[string]any{"namespace": ns,
			"serviceaccount": map[string]any{"name": "default", "uid": "0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			changed := map[string]any{}
			for k, v := range claims {
				changed[k] = v
			}
			for k, v := range change {
				changed[k] = v
			}
			forged, err := jwt.Signed(signer).Claims(changed).Serialize()
			if err != nil {
				t.Fatal(err)
			}
			_, err = whoami(t, bearer(t, forged))
			if good := name == "as it was" || name == "from later"; good && err != nil ||
				!good && !apierrors.IsUnauthorized(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Identity: a CA and account key that were rotated, with everything from before still good, until it is finished.
func TestRotatedKeys(t *testing.T) {
	dir := t.TempDir()
	cfg := api.Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{shared.etcd.Endpoint()},
		EtcdPrefix: "/rotated"}
	s, stop := serve(t, cfg)
	config := configOf(t, s)
	c := clientOf(t, config)
	ns := namespace(t, c)
	token := accountToken(t, c, ns, "default")
	cfg.SecurePort = s.Port()
	stop()

	check := func(step string, want bool) {
		t.Helper()
		s, stop := serve(t, cfg)
		defer stop()
		if _, err := whoami(t, config); (err == nil) != want {
			t.Errorf("%s: the old kubeconfig: %v", step, err)
		}
		now := configOf(t, s)
		if _, err := whoami(t, now); err != nil {
			t.Errorf("%s: the new kubeconfig: %v", step, err)
		}
		withToken := rest.AnonymousClientConfig(now)
		withToken.BearerToken = token
		if _, err := whoami(t, withToken); (err == nil) != want {
			t.Errorf("%s: the old token: %v", step, err)
		}
		fresh := rest.AnonymousClientConfig(now)
		fresh.BearerToken = accountToken(t, clientOf(t, now), ns, "default")
		if _, err := whoami(t, fresh); err != nil {
			t.Errorf("%s: a new token: %v", step, err)
		}
		raw, err := clientOf(t, now).Discovery().RESTClient().Get().AbsPath("/openid/v1/jwks").DoRaw(t.Context())
		var set jose.JSONWebKeySet
		if err != nil || json.Unmarshal(raw, &set) != nil || (len(set.Keys) == 2) != want {
			t.Errorf("%s: keys %s, %v", step, raw, err)
		}
	}
	if err := pki.Rotate(filepath.Join(dir, "pki")); err != nil {
		t.Fatal(err)
	}
	check("rotated", true)
	if _, err := pki.Finish(filepath.Join(dir, "pki")); err != nil {
		t.Fatal(err)
	}
	check("finished", false)
}

// Identity: the server's own certificate is renewed while it runs: clients go on beyond the end of the first one.
func TestServingCertificateIsRenewed(t *testing.T) {
	s, _ := serve(t, api.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1",
		EtcdServers: []string{shared.etcd.Endpoint()}, EtcdPrefix: "/renewed", CertLifetime: 5 * time.Second})
	config := configOf(t, s)
	config.CertData, config.KeyData = nil, nil // its own ends as soon
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: tlsOf(t, config), DisableKeepAlives: true}}
	defer client.CloseIdleConnections()
	var first *x509.Certificate
	// each handshake shows what is served now; there is no event of it
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		resp, err := client.Get(s.URL() + "/readyz")
		if err != nil {
			continue // a busy machine may be late
		}
		resp.Body.Close()
		if leaf := resp.TLS.PeerCertificates[0]; first == nil {
			first = leaf
		} else if time.Now().After(first.NotAfter) && !leaf.Equal(first) {
			return
		}
	}
	t.Errorf("nothing is served after the end of the first certificate, %v", first.NotAfter)
}
