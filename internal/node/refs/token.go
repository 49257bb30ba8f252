// SPDX-License-Identifier: Apache-2.0

package refs

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	maxTokenAge = 24 * time.Hour // a token is renewed at this age, however long it lives
	// the longest wait for a renewal: the clock may be set meanwhile, of which there is no event
	lookAgain     = time.Minute
	tokenRetry    = 30 * time.Second // after a renewal that did not work
	defaultExpiry = 3600             // seconds
)

type tokenKey struct {
	pod      types.UID
	account  string
	audience string
	seconds  int64
}

// token is one that was issued. Guarded by Sources.mu. Its times are on the wall clock, as those of the API server,
// which judges it.
type token struct {
	value   string
	issued  time.Time
	expires time.Time
	renew   time.Time
	timer   *time.Timer // notifies the pod when renewal is due
}

// due reports whether it is to be renewed: late in its life, or when the clock was set back to before it.
func (t *token) due(now time.Time) bool {
	return !now.Before(t.renew) || now.Before(t.issued.Add(-time.Second))
}

// ServiceAccountToken gives a token of the pod's service account, bound to the pod, and when it expires. The same is
// given again until 80 % of its life, or a day, are over; then Changed is called and the next call gets another. When
// none is to be had, the old one is given as long as it is good.
func (s *Sources) ServiceAccountToken(ctx context.Context, pod *corev1.Pod,
	p *corev1.ServiceAccountTokenProjection) (string, time.Time, error) {
	k := tokenKey{pod: pod.UID, account: accountOf(pod), audience: p.Audience, seconds: defaultExpiry}
	if p.ExpirationSeconds != nil {
		k.seconds = *p.ExpirationSeconds
	}
	now := s.cfg.Wall()
	s.mu.Lock()
	have := s.tokens[k]
	if have != nil && !have.due(now) {
		defer s.mu.Unlock()
		return have.value, have.expires, nil
	}
	s.mu.Unlock()

	got, err := s.request(ctx, pod, k, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if have == nil || !now.Before(have.expires) {
			return "", time.Time{}, err
		}
		s.cfg.Logger.Warn("cannot renew service account token", "pod", pod.Namespace+"/"+pod.Name, "account", k.account,
			"expires", have.expires, "err", err)
		got = &token{value: have.value, issued: now, expires: have.expires, renew: now.Add(tokenRetry)}
	}
	s.keep(k, got, now)
	return got.value, got.expires, nil
}

// request has a token issued; its life is counted from when it was asked for.
func (s *Sources) request(ctx context.Context, pod *corev1.Pod, k tokenKey, now time.Time) (*token, error) {
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &k.seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name,
			UID: pod.UID},
	}}
	if k.audience != "" {
		req.Spec.Audiences = []string{k.audience}
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Patience)
	defer cancel()
	r, err := s.cfg.Client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, k.account, req,
		metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token of service account %s/%s: %w", pod.Namespace, k.account, err)
	}
	if r.Status.Token == "" {
		return nil, fmt.Errorf("token of service account %s/%s: the API server returned an empty one", pod.Namespace,
			k.account)
	}
	life := r.Status.ExpirationTimestamp.Sub(now)
	return &token{value: r.Status.Token, issued: now, expires: r.Status.ExpirationTimestamp.Time,
		renew: now.Add(min(life*8/10, maxTokenAge))}, nil
}

// keep remembers the token of a registered pod and sets its timer. s.mu is held.
func (s *Sources) keep(k tokenKey, t *token, now time.Time) {
	s.drop(k)
	if _, ok := s.pods[k.pod]; !ok || s.ctx.Err() != nil {
		return
	}
	s.tokens[k] = t
	t.timer = time.AfterFunc(min(t.renew.Sub(now), lookAgain), func() {
		s.mu.Lock()
		now := s.cfg.Wall()
		current := s.tokens[k] == t
		due := t.due(now)
		if current && !due {
			t.timer.Reset(min(t.renew.Sub(now), lookAgain))
		}
		s.mu.Unlock()
		if current && due {
			s.cfg.Changed(k.pod)
		}
	})
}

// drop forgets a token. s.mu is held.
func (s *Sources) drop(k tokenKey) {
	if t := s.tokens[k]; t != nil {
		t.timer.Stop()
		delete(s.tokens, k)
	}
}
