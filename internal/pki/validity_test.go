// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// RS-07: an authority that has expired, or is not valid yet, says so, and a rotation puts a good one in its place.
// ATTACK C26.
func TestExpiredAuthority(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ca, err := LoadOrCreate(dir, "test-ca")
		if err != nil {
			t.Fatal(err)
		}
		if err := ca.ValidAt(time.Now()); err != nil {
			t.Errorf("a new one: %v", err)
		}
		var bad *ValidityError
		if err := ca.ValidAt(time.Now().Add(-2 * time.Hour)); !errors.As(err, &bad) || !bad.Early() || !strings.Contains(err.Error(), "clock says") {
			t.Errorf("before its time: %v", err)
		}
		time.Sleep(caLifetime + time.Hour)
		if err := ca.ValidAt(time.Now()); !errors.As(err, &bad) || bad.Early() || !strings.Contains(err.Error(), "expired on 20") {
			t.Errorf("after its time: %v", err)
		}
		if err := Rotate(dir); err != nil {
			t.Fatalf("rotation of an expired authority: %v", err)
		}
		next, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := next.ValidAt(time.Now()); err != nil {
			t.Errorf("after the rotation: %v", err)
		}
		chain, _, err := next.Serving([]string{"localhost"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		certs, err := ParseCertificates(chain)
		if err != nil || len(certs) != 1 {
			t.Fatalf("%d certificates are shown (%v), want one: what the expired authority vouches for helps nobody", len(certs), err)
		}
		if _, err := certs[0].Verify(x509.VerifyOptions{Roots: next.Pool(), CurrentTime: time.Now(), DNSName: "localhost"}); err != nil {
			t.Error(err)
		}
		if done, err := Finish(dir); !done || err != nil {
			t.Errorf("finish: %v, %v", done, err)
		}
	})
}

// RS-07: when the authority nears its end and passes it, renewing what cannot last longer is tried ever more seldom, not each second.
// ATTACK C26.
func TestRenewingBacksOffAtTheAuthoritysEnd(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ca, err := LoadOrCreate(dir, "test-ca")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(caLifetime - 100*time.Hour)
		var log strings.Builder
		made := 0
		r, err := NewRenewing("test", slog.New(slog.NewTextHandler(&log, nil)), func() ([]byte, []byte, error) {
			if made++; made > 10000 {
				return nil, nil, errors.New("a loop")
			}
			return ca.Serving([]string{"localhost"}, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx) }()
		time.Sleep(200 * time.Hour)
		cancel()
		<-ended
		if made < 2 || made > 150 {
			t.Errorf("made %d certificates in 200 hours, 100 of them after the authority's end", made)
		}
		if n := strings.Count(log.String(), "\n"); n > 3 {
			t.Errorf("%d lines in the log:\n%.2000s", n, log.String())
		}
	})
}

// RS-07: failures are tried again after a minute, then ever more seldom, up to ten minutes.
func TestRenewingBacksOffAfterFailures(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ca, err := LoadOrCreate(dir, "test-ca")
		if err != nil {
			t.Fatal(err)
		}
		made := 0
		r, err := NewRenewing("test", slog.New(slog.DiscardHandler), func() ([]byte, []byte, error) {
			if made++; made > 1 {
				return nil, nil, errors.New("no luck")
			}
			return ca.ServingFor([]string{"localhost"}, nil, 100*time.Hour)
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx) }()
		time.Sleep(90 * time.Hour)
		cancel()
		<-ended
		if made < 30 || made > 80 {
			t.Errorf("tried %d times in 10 hours, want every ten minutes", made)
		}
	})
}
