// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// oneAccount is a store with nothing but a service account.
type oneAccount struct{ TokenLookup }

func (oneAccount) ServiceAccount(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u"}}, nil
}

// TestTokenClockSetBack: RS-05: a token that was made before the clock was set back by an hour is taken, and ends when
// it says; before, it was refused until the clock had come to where it had been, and every client in a pod with it.
func TestTokenClockSetBack(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tokens := &AccountTokens{key: key, issuers: []string{"https://here"}, audiences: []string{"here"},
		Lookup: oneAccount{}}
	for _, c := range []struct {
		what string
		made time.Duration
		good bool
	}{
		{"before the clock was set back", time.Hour, true},
		{"now", 0, true},
		{"too long ago", -2 * time.Hour, false},
	} {
		text, err := tokens.sign(claims{Namespace: "n", ServiceAccount: ref{Name: "a", UID: "u"}}, tokens.audiences,
			time.Now().Add(c.made), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if _, good, err := tokens.AuthenticateToken(t.Context(), text); good != c.good {
			t.Errorf("a token made %s: taken: %t, %v", c.what, good, err)
		}
	}
}
