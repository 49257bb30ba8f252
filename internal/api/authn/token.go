// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	tokenjwt "k8s.io/apiserver/pkg/authentication/token/jwt"

	"github.com/wherryproject/wherry/internal/pki"
)

// defaultIssuer names this server in the tokens it signs, unless the configuration says otherwise; it is also the
// audience of tokens for its own API.
const defaultIssuer = "https://kubernetes.default.svc.cluster.local"

// deletedGrace is how long a token outlives the start of its account's or pod's deletion.
const deletedGrace = 60 * time.Second

// claims are what a service account token says besides the standard ones, in the form Kubernetes gives it.
type claims struct {
	Namespace      string `json:"namespace"`
	ServiceAccount ref    `json:"serviceaccount"`
	Pod            *ref   `json:"pod,omitempty"`
	Secret         *ref   `json:"secret,omitempty"`
	Node           *ref   `json:"node,omitempty"`
}

type ref struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

type privateClaims struct {
	Kubernetes claims `json:"kubernetes.io"`
}

// AccountTokens signs and checks service account tokens (ES256).
type AccountTokens struct {
	key       *ecdsa.PrivateKey
	former    []crypto.PublicKey // of keys before a rotation that is not finished
	issuers   []string           // the first one signs
	audiences []string           // whom tokens for this server are meant for
	jwksURI   string             // what the discovery document names; default: see ServeKeys
	Lookup    TokenLookup
}

// LoadAccountTokens reads the key that signs service account tokens, or makes it, and the former ones while a rotation
// is not finished.
func LoadAccountTokens(folder string, s Completed) (*AccountTokens, error) {
	key, err := pki.LoadOrCreateKey(filepath.Join(folder, pki.AccountKeyFile))
	if err != nil {
		return nil, fmt.Errorf("key of service account tokens: %w", err)
	}
	former, err := pki.ReadPublicKeys(filepath.Join(folder, pki.FormerAccountKeys))
	if err != nil {
		return nil, fmt.Errorf("former keys of service account tokens: %w", err)
	}
	return &AccountTokens{key: key, former: former, issuers: s.AccountIssuers, audiences: s.APIAudiences,
		jwksURI: s.AccountJWKSURI}, nil
}

// keyID names a key in the tokens it signs and in the set of keys: the digest of its public half.
func keyID(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// keys are all public keys that tokens may be signed by, as JWKS has them; the one in use is the first.
func (t *AccountTokens) keys() (set jose.JSONWebKeySet, err error) {
	for _, key := range append([]crypto.PublicKey{t.key.Public()}, t.former...) {
		id, err := keyID(key)
		if err != nil {
			return set, err
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(jose.ES256), Use: "sig"})
	}
	return set, nil
}

// TokenLookup reads the objects a token depends on, from the store.
type TokenLookup interface {
	ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	Node(ctx context.Context, name string) (*corev1.Node, error)
}

func (t *AccountTokens) sign(c claims, audiences []string, now time.Time, lifetime time.Duration) (string, error) {
	id, err := keyID(t.key.Public())
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: t.key, KeyID: id}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(jwt.Claims{
		Issuer:    t.issuers[0],
		Subject:   serviceaccount.MakeUsername(c.Namespace, c.ServiceAccount.Name),
		Audience:  audiences,
		IssuedAt:  jwt.NewNumericDate(now),
		NotBefore: jwt.NewNumericDate(now),
		Expiry:    jwt.NewNumericDate(now.Add(lifetime)),
		ID:        uuid.NewString(),
	}).Claims(privateClaims{c}).Serialize()
}

// AuthenticateToken implements authenticator.Token. Tokens of other issuers are left to other authenticators.
func (t *AccountTokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return nil, false, nil //nolint:nilerr // not one of ours
	}
	var unverified jwt.Claims
	if err := parsed.UnsafeClaimsWithoutVerification(&unverified); err != nil ||
		!slices.Contains(t.issuers, unverified.Issuer) {
		return nil, false, nil //nolint:nilerr // not one of ours
	}
	var public jwt.Claims
	var private privateClaims
	if !t.verify(parsed, &public, &private) {
		return nil, false, errors.New("service account token: the signature is not this server's")
	}
	now := time.Now()
	// This server made it: that its beginning is still to come says only that the clock was set back since. Pods are to
	// work on meanwhile.
	public.NotBefore, public.IssuedAt = nil, nil
	if err := public.ValidateWithLeeway(jwt.Expected{Time: now}, time.Second); err != nil {
		return nil, false, fmt.Errorf("service account token: %w", err)
	}
	wanted, ok := authenticator.AudiencesFrom(ctx)
	if !ok {
		wanted = t.audiences
	}
	matched := authenticator.Audiences(public.Audience).Intersect(wanted)
	if len(matched) == 0 {
		return nil, false, fmt.Errorf("service account token: its audiences %v are not this server's",
			[]string(public.Audience))
	}
	info, err := t.identify(ctx, private.Kubernetes, now)
	if err != nil {
		return nil, false, fmt.Errorf("service account token: %w", err)
	}
	info.CredentialID = tokenjwt.CredentialIDForJTI(public.ID)
	return &authenticator.Response{User: info.UserInfo(), Audiences: matched}, true, nil
}

// verify reads the claims if one of the keys has signed them.
func (t *AccountTokens) verify(token *jwt.JSONWebToken, into ...any) bool {
	for _, key := range append([]crypto.PublicKey{t.key.Public()}, t.former...) {
		if token.Claims(key, into...) == nil {
			return true
		}
	}
	return false
}

// identify checks that everything the token is bound to still exists as the same object.
func (t *AccountTokens) identify(ctx context.Context, c claims,
	now time.Time) (*serviceaccount.ServiceAccountInfo, error) {
	sa, err := t.Lookup.ServiceAccount(ctx, c.Namespace, c.ServiceAccount.Name)
	if err != nil {
		return nil, err
	}
	if string(sa.UID) != c.ServiceAccount.UID {
		return nil, fmt.Errorf("service account %s/%s was replaced since", c.Namespace, c.ServiceAccount.Name)
	}
	if sa.DeletionTimestamp != nil && now.After(sa.DeletionTimestamp.Add(deletedGrace)) {
		return nil, fmt.Errorf("service account %s/%s is deleted", c.Namespace, c.ServiceAccount.Name)
	}
	info := &serviceaccount.ServiceAccountInfo{Namespace: c.Namespace, Name: c.ServiceAccount.Name,
		UID: c.ServiceAccount.UID}
	if c.Secret != nil {
		secret, err := t.Lookup.Secret(ctx, c.Namespace, c.Secret.Name)
		if err != nil {
			return nil, err
		}
		if string(secret.UID) != c.Secret.UID {
			return nil, fmt.Errorf("secret %s/%s was replaced since", c.Namespace, c.Secret.Name)
		}
	}
	if c.Pod != nil {
		pod, err := t.Lookup.Pod(ctx, c.Namespace, c.Pod.Name)
		if err != nil {
			return nil, err
		}
		if string(pod.UID) != c.Pod.UID {
			return nil, fmt.Errorf("pod %s/%s was replaced since", c.Namespace, c.Pod.Name)
		}
		if pod.DeletionTimestamp != nil && now.After(pod.DeletionTimestamp.Add(deletedGrace)) {
			return nil, fmt.Errorf("pod %s/%s is deleted", c.Namespace, c.Pod.Name)
		}
		info.PodName, info.PodUID = c.Pod.Name, c.Pod.UID
	}
	if c.Node != nil {
		info.NodeName, info.NodeUID = c.Node.Name, c.Node.UID
		if c.Pod == nil { // the node is what the token is bound to, not just where its pod was
			node, err := t.Lookup.Node(ctx, c.Node.Name)
			if err != nil {
				return nil, err
			}
			if string(node.UID) != c.Node.UID {
				return nil, fmt.Errorf("node %s was replaced since", c.Node.Name)
			}
		}
	}
	return info, nil
}
